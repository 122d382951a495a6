package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) sbomCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sbom [FILE]", Short: "List what a binary is made of, as SPDX",
		Long:    "List the modules this binary, or another one built with Go, is made of, in SPDX 2.3.\nIt is read out of the binary itself: nothing is looked up.",
		Example: "  passepartout sbom\n  passepartout sbom dist/passepartout-linux-arm64 > linux-arm64.spdx.json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := os.Executable()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				file = args[0]
			}
			doc, err := sbom(file)
			if err != nil {
				return err
			}
			return a.printJSON(doc)
		},
	}
}

// sbom describes a binary by what the linker wrote into it. The same binary gives
// the same document: its time is that of the commit it was built from.
func sbom(file string) (map[string]any, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sum, err := digestOf(file)
	if err != nil {
		return nil, err
	}
	setting := func(key string) string {
		i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key })
		if i < 0 {
			return ""
		}
		return info.Settings[i].Value
	}
	created := setting("vcs.time")
	if created == "" {
		created = time.Unix(0, 0).UTC().Format(time.RFC3339)
	}
	version := info.Main.Version
	if rev := setting("vcs.revision"); rev != "" {
		version = rev
	}
	packages := []map[string]any{{
		"SPDXID": "SPDXRef-main", "name": info.Main.Path, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
		"licenseDeclared": "Apache-2.0", "licenseConcluded": "NOASSERTION", "packageFileName": filepath.Base(file),
		"checksums": []map[string]string{{"algorithm": "SHA256", "checksumValue": sum}},
	}, {
		"SPDXID": "SPDXRef-go", "name": "go", "versionInfo": strings.TrimPrefix(info.GoVersion, "go"), "downloadLocation": "https://go.dev/dl/",
		"filesAnalyzed": false, "licenseDeclared": "BSD-3-Clause", "licenseConcluded": "NOASSERTION",
	}}
	relations := []map[string]string{
		{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-main"},
		{"spdxElementId": "SPDXRef-main", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "SPDXRef-go"},
	}
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		id := fmt.Sprintf("SPDXRef-module-%d", i+1)
		packages = append(packages, map[string]any{
			"SPDXID": id, "name": m.Path, "versionInfo": m.Version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
			"licenseDeclared": "NOASSERTION", "licenseConcluded": "NOASSERTION", "comment": m.Sum,
			"externalRefs": []map[string]string{{
				"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:golang/" + m.Path + "@" + m.Version,
			}},
		})
		relations = append(relations, map[string]string{"spdxElementId": "SPDXRef-main", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": id})
	}
	return map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": filepath.Base(file),
		"documentNamespace": "https://spdx.org/spdxdocs/passepartout-" + sum,
		"creationInfo":      map[string]any{"created": created, "creators": []string{"Tool: passepartout sbom"}},
		"packages":          packages, "relationships": relations,
	}, nil
}

func digestOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
