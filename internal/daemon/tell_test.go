package daemon_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/channel/channeltest"
	"passepartout/internal/journal"
	"passepartout/internal/sexp"
)

const plants = "* Water the plants\n:PROPERTIES:\n:CRON: @yearly\n:DO: remind\n:END:\nAll of them, and mind the one on the roof.\n"

// hasRun runs an order and waits until the record says how it ended.
func (p *peer) hasRun(name string) {
	p.t.Helper()
	before := len(p.runs(name))
	p.change("RUN", name)
	eventuallyRan(p, name, before+1)
}

func eventuallyRan(p *peer, name string, n int) {
	p.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if rs := p.runs(name); len(rs) >= n && rs[0].Text("ENDED") != "" {
			return
		}
	}
	p.t.Fatalf("%s never ran", name)
}

func TestAReminderReachesTheTelephoneOfAnOwnerWhoIsAway(t *testing.T) {
	for _, c := range []struct {
		name, notices, listens string // in which conversation a client listens, "" for none
		told                   int
	}{
		{"nobody listens", "", "", 1},
		{"somebody listens", "away", "main", 0},
		{"somebody listens to another conversation", "away", "elsewhere", 0},
		{"always", "always", "main", 1},
		{"never", "local", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tg := newTelegram(t)
			s := linkedSettings(t, tg)
			s.Notices = c.notices
			orders(t, s, "system/schedule.org", plants)
			h := open(t, s)
			p := h.connect()
			pairAda(t, tg, p)
			w := h.connectAs("tui")
			if c.listens != "" {
				w.request(data(t, `(:TYPE :REQUEST :META (:SESSION-ID "`+c.listens+`") :PAYLOAD (:ACTION :LISTEN))`))
			}
			p.hasRun("Water the plants")
			if c.listens != "" {
				for m, err := w.Receive(); !strings.Contains(m.Payload.Text("TEXT"), "mind the one on the roof"); m, err = w.Receive() {
					if err != nil {
						t.Fatalf("who listens is not told: %v", err)
					}
				}
			}
			p.lastWord(tg)
			if n := shown(tg, "All of them, and mind the one on the roof."); n != c.told {
				t.Errorf("told %d times, want %d: %+v", n, c.told, tg.Chat(ada))
			}
			h.close()
			if n := noticed(t, s.StateDir); n != c.told {
				t.Errorf("%d notices in the journal, want %d", n, c.told)
			}
		})
	}
}

// lastWord waits until everything said so far has been delivered: in a conversation
// nothing overtakes.
func (p *peer) lastWord(tg *channeltest.Telegram) {
	p.t.Helper()
	p.request(gatewayRequest("GATEWAY-TEST", sexp.Keyword("CHANNEL"), "telegram"))
	eventually(p.t, tg, func() bool { return shown(tg, "asked for on your machine.") == 1 }, "no greeting")
}

// noticed counts the notices of which the journal knows.
func noticed(t *testing.T, state string) (n int) {
	t.Helper()
	for e, err := range journal.Read(filepath.Join(state, "journal")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Body.Word("KIND") == "CHANNEL" && e.Body.Word("EVENT") == "NOTICE" {
			n++
		}
	}
	return n
}

func TestWhatIsPrivateAboutANoticeStaysOnTheMachine(t *testing.T) {
	tg := newTelegram(t)
	s := linkedSettings(t, tg)
	today := time.Now().Format("2006-01-02 Mon")
	orders(t, s, "areas/me.org", "* Zoe's birthday :@personal:\nBuy the blue kite.\n")
	orders(t, s, "system/schedule.org", strings.Replace(plants, "* Water the plants", "* Water the plants :@personal:", 1)+
		"* Ask\n:PROPERTIES:\n:CRON: @yearly\n:END:\nwhat do I know about Zoe's birthday?\n"+
		"* Break\n:PROPERTIES:\n:CRON: @yearly\n:DO: call nosuchroof\n:END:\n"+
		"* Hush\n:PROPERTIES:\n:CRON: @yearly\n:DO: call nosuchhush\n:QUIET: t\n:END:\n")
	h := open(t, s)
	p := h.connect()
	pairAda(t, tg, p)
	for _, name := range []string{"Water the plants", "Ask", "Break", "Hush"} {
		p.hasRun(name)
	}
	// The first look at dates only remembers them.
	orders(t, s, "system/schedule.org", "* Dates\n:PROPERTIES:\n:CRON: @yearly\n:DO: call deadlines\n:END:\n")
	until(t, "the order is seen", func() bool {
		return strings.Contains(p.request(data(t, "(:TYPE :REQUEST :PAYLOAD (:ACTION :SCHEDULE))")).Payload.String(), "Dates")
	})
	p.hasRun("Dates")
	orders(t, s, "projects/new.org", "* TODO Send the form\nDEADLINE: <"+today+">\n* TODO Kiss Zoe :@personal:\nDEADLINE: <"+today+">\n")
	until(t, "the dates are told", func() bool { p.hasRun("Dates"); return shown(tg, "due today: Send the form") == 1 })
	eventually(t, tg, func() bool { return shown(tg, "due today: a private heading") == 1 }, "nothing is said of the private date")
	if shown(tg, "is private: look on your machine") != 1 || shown(tg, "Break failed.") != 1 || shown(tg, "Ask has an answer in which something private took part") != 1 {
		t.Errorf("what is said is %+v", tg.Chat(ada))
	}
	for _, word := range []string{"roof", "plants", "kite", "Zoe", "Kiss", "Hush", "areas/", "projects/"} {
		if shown(tg, word) != 0 {
			t.Errorf("%q left the machine: %+v", word, tg.Chat(ada))
		}
	}
}

func TestAReminderOutlivesARestartBetweenItsTimeAndItsSending(t *testing.T) {
	tg := newTelegram(t)
	s := linkedSettings(t, tg)
	orders(t, s, "system/schedule.org", plants)
	h := open(t, s)
	p := h.connect()
	pairAda(t, tg, p)
	tg.Misbehave(func(method string) channeltest.Fault {
		if method == "sendMessage" {
			return channeltest.Broken
		}
		return channeltest.None
	}, false, false)
	p.hasRun("Water the plants")
	h.close()
	if n := shown(tg, "plants"); n != 0 {
		t.Fatalf("it was sent %d times although nothing can be", n)
	}
	tg.Misbehave(nil, false, false)
	open(t, s)
	eventually(t, tg, func() bool { return shown(tg, "mind the one on the roof.") == 1 }, "the reminder is lost")
}

// TestARealDaemonKilledInTheMiddleOfAReminderTellsItOnce kills the daemon with SIGKILL
// where the telephone's message is on disk and the run is not recorded as done. The next
// one repeats the run, and the telephone rings once.
func TestARealDaemonKilledInTheMiddleOfAReminderTellsItOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts daemons: run by make test")
	}
	for _, step := range []string{"noticed", "placed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			tg := newTelegram(t)
			s := linkedSettings(t, tg)
			orders(t, s, "system/schedule.org", plants)
			h := open(t, s)
			pairAda(t, tg, h.connect())
			h.close()
			dead := linkedVictim(t, s, tg.URL, step)
			v := house{t: t, settings: s}
			v.connect().try(data(t, `(:TYPE :REQUEST :PAYLOAD (:ACTION :SCHEDULE-CHANGE :CHANGE :RUN :NAME "Water the plants"))`))
			eventually(t, tg, dead, "nobody died")
			p := open(t, s).connect()
			until(t, "the reminder is done", func() bool { return ended(p.runs("Water the plants"), "DONE") == 1 })
			eventually(t, tg, func() bool { return shown(tg, "mind the one on the roof.") == 1 }, "the reminder is lost")
			p.lastWord(tg)
			if n := shown(tg, "mind the one on the roof."); n != 1 {
				t.Errorf("told %d times: %+v", n, tg.Chat(ada))
			}
		})
	}
}

func TestWhatAModelWroteGoesWhereItsAnswersMayGo(t *testing.T) {
	for permissions, want := range map[string]string{
		remotePermissions: "Look: The lamp is mended.",
		askFirst:          "Look has an answer. Look on your machine.",
	} {
		tg := newTelegram(t)
		m := newModel(t, always(speak("The lamp is mended.")))
		s := m.cloud(linkedSettings(t, tg))
		orders(t, s, "system/permissions.org", permissions)
		orders(t, s, "system/schedule.org", "* Look\n:PROPERTIES:\n:CRON: @yearly\n:END:\nLook at the lamp.\n")
		p := open(t, s).connect()
		pairAda(t, tg, p)
		p.hasRun("Look")
		p.lastWord(tg)
		if shown(tg, want) != 1 {
			t.Errorf("want %q, found %+v", want, tg.Chat(ada))
		}
	}
}
