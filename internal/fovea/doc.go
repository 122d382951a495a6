// Package fovea chooses the few thousand tokens of a memex that belong in front of
// a model, and says why each of them is there.
//
// A [Mirror] keeps a recall index equal to a memory view. [Render] takes a view,
// an index and a [Focus] and returns a [Context]: Org text within a hard budget of
// tokens, and an [Entry] for every node that is in it or was dropped from it. What
// the eye rests on is whole, what is near in meaning, time or by links is whole
// while there is room, all else is a line with its id.
//
// The rule a newcomer will break: nothing is added to the text without passing the
// budget and the privacy filter, both of which are in one place (page.go). Text
// for a model that is not on this machine never holds a privacy-tagged node, not
// even its title.
package fovea
