// Package pulse is the agent's background: scheduled jobs, hooks, the heartbeat.
//
// The central types:
//
//   - [Job] is a standing order with a time: a heading with a cron expression or a
//     repeating date ([ReadJobs]). [Hook] is one with an event.
//   - [Log] is the record of runs on disk, from which everything about the past is
//     computed: which due times were dealt with, which passed while nobody looked.
//   - [Pulse] owns the timer, the queue of runs and the hooks. What a run does is a
//     function it is given ([Options].Do), so it knows neither agent nor model.
//   - [Check] is one thing the heartbeat looks after.
//
// What may be assumed: a run is in the log, on disk, before it begins; every due
// time ends as a run or as missed or skipped; a predicate is asked before any model;
// nothing here blocks whoever reports an event.
//
// The rule a newcomer will break: a due time is dealt with when it is looked at,
// not when a timer fires. Timers are only a reason to look; sleep, a daemon that was
// off and a clock that was set are all found out in the same way, from the log.
package pulse
