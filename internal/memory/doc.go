// Package memory is the user's folder of Org files as objects, with history,
// undo and no lost update.
//
// The files are the truth. [Open] scans a directory into a [Store]; [Store.View]
// is one atomic load of an immutable [View], which a turn pins and asks: [View.Get],
// [View.Match], [View.Agenda], [View.Search]. Every headline and every file is an
// [Object] with a Merkle [Hash]. Taking a snapshot is keeping a View: views share
// every file that did not change.
//
// Writing goes one way: [Store.Apply] takes a [Tx] of [Edit] values, each naming an
// object, the hash the caller saw and a [Change]. The store writes the intention to
// its history first, then replaces the files one by one, reads them back, and
// commits: after a crash the next Open finishes or withdraws the transaction.
// [Store.Undo], [Store.Redo] and [Store.Rewind] are transactions of the same kind.
//
// Beside the user's files there is a state directory: history (append only, the one
// thing here that is not disposable) and index (disposable: it only saves hashing
// at the next start).
//
// The rule a newcomer will break: an Object belongs to the View it came from.
// After an edit, take it again from a new View; and never pass a hash from one view
// with text from another, for the hash is the claim "this is what I read".
package memory
