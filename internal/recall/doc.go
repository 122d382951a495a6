// Package recall finds the notes a question is about, without a network.
//
// An [Index] holds one entry per [Doc] and answers [Index.Search] with four
// signals, each scaled to its best hit and added up ([Mode] Fused):
//
//   - lexical: BM25 over title, tags, outline and body, stemmed, with identifiers
//     split (text.go, search.go);
//   - spelling: the same, over words that share character 3- to 5-grams with the
//     query's, for typos, inflections and compounds (gram.go);
//   - dense: vectors learnt from the notes themselves by [Index.Learn], a truncated
//     singular value decomposition with a fixed seed (learn.go, dense.go);
//   - nearness: whether the query's words stand together in the best notes (near.go).
//
// A [Feed] adds the vectors an [Embedder] makes of the notes (feed.go), keeps them on
// disk (vectors.go), and finds out on the notes themselves how much they may count
// (calibrate.go), so that a poor embedder cannot make a search worse. Likeness is
// given on one scale for all embedders (threshold.go).
//
// [Index.Put] and [Index.Delete] may run beside searches: a lock is held for one
// document at a time. The same documents in the same order give the same ranking
// on every machine.
//
// The rule a newcomer will break: sums of floats depend on their order, and maps
// have none. Sort before adding up, break ties by ID, and give every goroutine its
// own rows, or two machines will rank differently.
package recall
