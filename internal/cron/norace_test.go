//go:build !race

package cron_test

// underRace tells tests that everything costs ten times as much.
const underRace = false
