// Package recall finds the notes a question is about, without a network.
//
// An [Index] holds one entry per [Doc] and answers [Index.Search] with four
// signals, each scaled to its best hit and added up ([Mode] Fused):
//
//   - lexical: BM25 over title, tags, outline and body, stemmed, with identifiers
//     split (text.go, lexical.go);
//   - spelling: the same, over words that share character 3- to 5-grams with the
//     query's, for typos, inflections and compounds (gram.go);
//   - dense: vectors, either learnt from the notes themselves by [Index.Learn], a
//     truncated singular value decomposition with a fixed seed (learn.go, dense.go),
//     or an [Embedder]'s over HTTP (embed.go), kept up to date by a [Filler];
//   - nearness: whether the query's words stand together in the best notes (near.go).
//
// [Index.Put] and [Index.Delete] may run beside searches: a lock is held for one
// document at a time. The same documents in the same order give the same ranking
// on every machine.
//
// The rule a newcomer will break: a Doc marked Private never reaches an Embedder
// that is not on this machine. The Filler enforces it; do not call an Embedder
// with a document's text anywhere else.
package recall
