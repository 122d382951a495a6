// Package soak holds a long test of the whole: the real binary, all its kinds of
// clients at once, and somebody who breaks things meanwhile. `make soak` runs it for
// twenty minutes, `make test` a miniature of it.
//
//   - stage: the rig runs in namespaces of its own (processes, mounts, network), so
//     that disks can be small, no packet leaves, and nothing is left running.
//   - world: directories, settings, the daemon and who starts it again; the ledger of
//     every message that was sent and what became of it.
//   - clients: command lines, wire clients, Emacs, the terminal client, Telegram, the
//     person who approves, the person's own editor.
//   - model: a scripted model over HTTP: good, slow, broken, hostile.
//   - faults: what is broken, in an order a seed decides.
//   - check: what must be true afterwards, read from disk and from what the clients
//     and the model saw, and printed as a table.
//
// The rule a newcomer will break: the checker believes the disk and the clients'
// ledger, never the daemon's word for its own state. Where it must be lenient (a
// message cut off by a kill may or may not have been carried out) it is lenient by
// the ledger's times, not by guessing.
package soak
