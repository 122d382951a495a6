package recall

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"passepartout/internal/durable"
)

// A provider's vectors are kept in a file a set: a head with the embedder's name and
// the number of components, then records of one size, each a text's key, a scale, a
// byte a component and a checksum. No text is in it, nor an ID. What a crash cut
// short is cut off; what does not add up is made again. A set that was whole has a
// second file with its calibration.
const (
	vectorMagic  = "pp-vec1\n"
	vectorSuffix = ".vec"
	longestName  = 512
	mostRawDims  = 1 << 14
)

// A vectorFile is an open set on disk.
type vectorFile struct {
	path string
	name string
	raw  int // components
}

func vectorPath(dir, name string, raw int) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(dir, fmt.Sprintf("%x-%d%s", sum[:8], raw, vectorSuffix))
}

// recordSize is what one vector takes.
func (v vectorFile) recordSize() int { return len(textKey{}) + 4 + v.raw + 4 }

func (v vectorFile) headSize() int { return len(vectorMagic) + 4 + 2 + len(v.name) }

// createVectors begins a set on disk.
func createVectors(dir, name string, raw int) (vectorFile, error) {
	v := vectorFile{vectorPath(dir, name, raw), name, raw}
	if len(name) > longestName || raw <= 0 || raw > mostRawDims {
		return v, fmt.Errorf("want a name of at most %d bytes and 1 to %d components, found %d and %d", longestName, mostRawDims, len(name), raw)
	}
	return v, v.rewrite(nil)
}

// headOf reads whose set a file is.
func headOf(path string, r io.Reader) (vectorFile, error) {
	v := vectorFile{path: path}
	head := make([]byte, len(vectorMagic)+6)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(vectorMagic)]) != vectorMagic {
		return v, fmt.Errorf("%s: not a file of vectors", path)
	}
	v.raw = int(binary.LittleEndian.Uint32(head[len(vectorMagic):]))
	n := int(binary.LittleEndian.Uint16(head[len(vectorMagic)+4:]))
	if v.raw <= 0 || v.raw > mostRawDims || n > longestName {
		return v, fmt.Errorf("%s: %d components: not a file of vectors", path, v.raw)
	}
	name := make([]byte, n)
	if _, err := io.ReadFull(r, name); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	v.name = string(name)
	return v, nil
}

// vectorFiles lists the sets of a directory, the newest first. A file that is not
// one is left out: the directory can be deleted at any time.
func vectorFiles(dir string) ([]vectorFile, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	type dated struct {
		vectorFile
		at int64
	}
	var all []dated
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || filepath.Ext(e.Name()) != vectorSuffix || !info.Mode().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		v, err := headOf(f.Name(), f)
		if cerr := f.Close(); err == nil && cerr == nil {
			all = append(all, dated{v, info.ModTime().UnixNano()})
		}
	}
	slices.SortStableFunc(all, func(a, b dated) int { return int(min(max(b.at-a.at, -1), 1)) })
	out := make([]vectorFile, len(all))
	for i, d := range all {
		out[i] = d.vectorFile
	}
	return out, nil
}

// each calls f for every whole record, and returns how many bytes were read well
// and how many records there were.
func (v vectorFile) each(f func(textKey, float32, []int8)) (good int64, records int, err error) {
	file, err := os.Open(v.path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close() // only read
	r := bufio.NewReaderSize(file, 1<<20)
	if _, err := headOf(v.path, r); err != nil {
		return 0, 0, err
	}
	good = int64(v.headSize())
	rec := make([]byte, v.recordSize())
	vec := make([]int8, v.raw)
	for {
		if _, err := io.ReadFull(r, rec); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return good, records, err
		}
		body := rec[:len(rec)-4]
		if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(rec[len(body):]) {
			return good, records, nil // what follows cannot be trusted to be aligned
		}
		good += int64(len(rec))
		records++
		var k textKey
		copy(k[:], body)
		scale := math.Float32frombits(binary.LittleEndian.Uint32(body[len(k):]))
		for i, b := range body[len(k)+4:] {
			vec[i] = int8(b)
		}
		f(k, scale, vec)
	}
}

// appendRecord adds a vector as it is kept.
func appendRecord(to []byte, k textKey, scale float32, vec []int8) []byte {
	from := len(to)
	to = append(to, k[:]...)
	to = binary.LittleEndian.AppendUint32(to, math.Float32bits(scale))
	for _, b := range vec {
		to = append(to, byte(b))
	}
	return binary.LittleEndian.AppendUint32(to, crc32.ChecksumIEEE(to[from:]))
}

// add writes records to the end of the set.
func (v vectorFile) add(records []byte) (err error) {
	f, err := os.OpenFile(v.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(records)
	return errors.Join(err, f.Sync(), f.Close())
}

// rewrite keeps only these vectors.
func (v vectorFile) rewrite(records []byte) error {
	text := binary.LittleEndian.AppendUint32([]byte(vectorMagic), uint32(v.raw))
	text = binary.LittleEndian.AppendUint16(text, uint16(len(v.name)))
	text = append(text, v.name...)
	return durable.Replace(v.path, append(text, records...), 0o600)
}

// calibrationPath is beside the set.
func (v vectorFile) calibrationPath() string { return v.path + ".json" }

// calibration is what was found out about the set, if it ever was whole.
func (v vectorFile) calibration() (c Calibration, whole bool) {
	raw, err := os.ReadFile(v.calibrationPath())
	if err != nil || json.Unmarshal(raw, &c) != nil || !(c.Weight >= 0 && c.Weight <= 1) || !(c.Floor > -1 && c.Floor < 1) {
		return Calibration{}, false
	}
	return c, true
}

func (v vectorFile) keep(c Calibration) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return durable.Replace(v.calibrationPath(), raw, 0o600)
}

// remove deletes the set.
func (v vectorFile) remove() error {
	err := os.Remove(v.calibrationPath())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(v.path))
}
