package main_test

import (
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"passepartout/internal/channel/channeltest"
)

// telegram plays Telegram for a script:
//
//	telegram start               and tells the binary where it is
//	telegram say WHO TEXT…       somebody writes; @FILE stands for a file's text
//	telegram touch WHO WORD      somebody touches the button that begins with the word
//	telegram shows WHO TEXT…     waits until they are shown it
//	telegram silent WHO          they are shown nothing
func telegram(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: telegram start|say|touch|shows|silent …")
	}
	if args[0] == "start" {
		tg := channeltest.NewTelegram()
		ts.Defer(tg.Close)
		ts.Value("telegram").(map[string]*channeltest.Telegram)["it"] = tg
		ts.Setenv("TELEGRAM_API_URL", tg.URL)
		ts.Setenv("TOKEN", channeltest.Token)
		return
	}
	tg := ts.Value("telegram").(map[string]*channeltest.Telegram)["it"]
	if tg == nil || len(args) < 2 {
		ts.Fatalf("telegram: not started, or nobody named")
	}
	who, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	text := strings.Join(args[2:], " ")
	switch args[0] {
	case "say":
		if name, ok := strings.CutPrefix(text, "@"); ok {
			text = strings.TrimSpace(ts.ReadFile(name))
		}
		tg.Say(who, text)
	case "touch":
		until(ts, tg, who, func(l channeltest.Line) bool {
			for _, b := range l.Buttons {
				if strings.HasPrefix(b, text) {
					tg.Touch(who, channeltest.Private(who), l.ID, b)
					return true
				}
			}
			return false
		}, "a button that begins with "+text)
	case "shows":
		until(ts, tg, who, func(l channeltest.Line) bool { return strings.Contains(l.Text, text) }, text)
	case "silent":
		if l := tg.Chat(who); len(l) > 0 {
			ts.Fatalf("%d is shown %+v", who, l)
		}
	default:
		ts.Fatalf("telegram %s: unknown", args[0])
	}
}

// until waits for a message; the limit only ends a script that would wait for ever.
func until(ts *testscript.TestScript, tg *channeltest.Telegram, who int64, is func(channeltest.Line) bool, what string) {
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, l := range tg.Chat(who) {
			if is(l) {
				return
			}
		}
	}
	ts.Fatalf("%d is never shown %q: %+v", who, what, tg.Chat(who))
}
