// Package arch holds the tests that keep the shape of the tree: which package may
// import which, who has which power, which packages compute and never touch the
// world, how large things may grow. It also prints the layer picture that
// ARCHITECTURE.md shows.
//
// The rule a newcomer will break: a failure here means the design changed. Change
// the tables below only together with ARCHITECTURE.md and a reason.
package arch
