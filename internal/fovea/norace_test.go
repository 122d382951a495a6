//go:build !race

package fovea_test

// underRace tells tests that everything costs ten times as much.
const underRace = false
