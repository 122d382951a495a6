package sexp_test

import (
	"strings"
	"testing"

	"passepartout/internal/sexp"
)

// frame is a dense message of about 300 bytes, with as many keys as they have.
const frame = `(:TYPE :REQUEST :META (:SOURCE :TUI :SESSION "s-7f3a" :ID 184467 :DEPTH 2) :PAYLOAD (:SENSOR :USER-INPUT ` +
	`:TEXT "what is due this week, and which of it did I promise to someone?" :FOCUS "projects/garden.org" ` +
	`:CAPABILITIES (:STREAM :APPROVE :MARKDOWN) :AT "2026-11-15T03:30:00Z" :ATTEMPT 1 :TAINT :TRUSTED))`

func mustRead(tb testing.TB, src string) sexp.Value {
	tb.Helper()
	v, err := sexp.Read([]byte(src), sexp.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// event is a user's input padded to n bytes, which is mostly one string.
func event(n int) string {
	const head = `(:TYPE :EVENT :META (:SOURCE :TUI :SESSION-ID "bench-session-0001") :PAYLOAD (:SENSOR :USER-INPUT :TEXT "`
	const tail = `") :DEPTH 0 :STATUS :PERCEIVED)`
	pad := strings.Repeat("the quick brown fox jumps over ", n/31+1)
	return head + pad[:n-len(head)-len(tail)] + tail
}

func BenchmarkFrame(b *testing.B) {
	for _, bm := range []struct{ name, src string }{{"event300B", event(300)}, {"event100KB", event(100 << 10)}, {"dense300B", frame}} {
		v, src := mustRead(b, bm.src), []byte(bm.src)
		var buf []byte
		b.Run(bm.name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				buf = sexp.AppendValue(buf[:0], v)
			}
		})
		b.Run(bm.name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, err := sexp.ReadPlist(src, sexp.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bm.name+"/both", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				buf = sexp.AppendValue(buf[:0], v)
				if _, err := sexp.ReadPlist(buf, sexp.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEscapedString(b *testing.B) {
	v := sexp.String(strings.Repeat(`{"key": "a value\n"}`, 5000))
	src := sexp.AppendValue(nil, v)
	var buf []byte
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			buf = sexp.AppendValue(buf[:0], v)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if _, err := sexp.Read(src, sexp.Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSum(b *testing.B) {
	v := mustRead(b, frame)
	b.ReportAllocs()
	for b.Loop() {
		sexp.Sum(v)
	}
}

func BenchmarkEqual(b *testing.B) {
	v, w := mustRead(b, frame), mustRead(b, frame)
	b.ReportAllocs()
	for b.Loop() {
		if !sexp.Equal(v, w) {
			b.Fatal("differ")
		}
	}
}
