package org_test

import (
	"testing"

	"passepartout/internal/org"
)

func total(docs [][]byte) (n int64) {
	for _, d := range docs {
		n += int64(len(d))
	}
	return n
}

func BenchmarkOutline(b *testing.B) {
	docs := readAll(b, sharedOrgFiles(b))
	b.SetBytes(total(docs))
	b.ReportAllocs()
	heads := 0
	for b.Loop() {
		heads = 0
		for _, d := range docs {
			heads += org.Parse(d).Len()
		}
	}
	b.ReportMetric(float64(heads), "headlines/op")
}

func BenchmarkEverything(b *testing.B) {
	docs := readAll(b, sharedOrgFiles(b))
	b.SetBytes(total(docs))
	b.ReportAllocs()
	links := 0
	for b.Loop() {
		for _, d := range docs {
			links += len(org.Parse(d).Contents().Links)
		}
	}
}
