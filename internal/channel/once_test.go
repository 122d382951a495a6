package channel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"passepartout/internal/channel/channeltest"
	"passepartout/internal/proto"
)

// interrupted is what is said of a message whose effect happened and whose answer
// was lost with the program.
const interrupted = "I was interrupted while working on"

// checkOnce is the model: every message is processed exactly once, and every
// reply stands in the conversation exactly once, in full. Only where the program
// died between an effect and its answer is the answer replaced by the truth about
// that; died says whether that can be. A beginning, which ends with three dots, counts
// for nothing.
func (w *world) checkOnce(messages []string, died bool) {
	w.t.Helper()
	for _, m := range messages {
		word, what, _ := strings.Cut(m, " ")
		want := map[string]string{"do": "did ", "say": "said "}[word] + what
		replies, told := 0, 0
		for _, l := range w.telegram.Chat(owner) {
			switch {
			case l.Text == want:
				replies++
			case strings.HasPrefix(l.Text, fmt.Sprintf("%s %q", interrupted, m)) && !strings.HasSuffix(l.Text, "…"):
				told++
			}
		}
		if word == "do" {
			if n := w.robot.effects(what); n != 1 {
				w.t.Errorf("%q was done %d times", m, n)
			}
		} else if told != 0 {
			w.t.Errorf("%q had no effect, and is said to be interrupted", m)
		}
		if replies+told != 1 || told > 0 && !died {
			w.t.Errorf("%q: the reply stands there %d times, an interruption %d times\n%s", m, replies, told, w.picture())
		}
	}
}

func TestEveryMessageIsProcessedOnceWhereverTheProgramDies(t *testing.T) {
	t.Run("in order", func(t *testing.T) { dieEverywhere(t, false) })
	if testing.Short() {
		return // what is handed over badly, too, is run by make test
	}
	t.Run("handed over backwards and again", func(t *testing.T) { dieEverywhere(t, true) })
}

// dieEverywhere ends a life at every step of three messages, which wait together
// when it begins.
func dieEverywhere(t *testing.T, badly bool) {
	t.Helper()
	messages := []string{"do one", "say two", "do three"}
	crashes := 0
	for at := 1; ; at++ {
		if at > 500 {
			t.Fatal("the scenario never ends without a crash")
		}
		w := newWorld(t)
		l := w.live(0)
		w.pair(l, owner, proto.RoleOwner)
		w.settled(l)
		l.close()
		for _, m := range messages {
			w.telegram.Say(owner, m)
		}
		w.telegram.Misbehave(nil, badly, badly)
		l = w.live(at)
		over := false
		w.eventually(func() bool {
			if l.crash.isDead() {
				return true
			}
			st := l.Status()
			over = st.Waiting == 0 && st.Unsent == 0 && w.telegram.Waiting() == 0 && len(w.robot.signals()) == len(messages)
			return over && w.count(owner, "did three") == 1
		}, "step %d: neither dead nor done", at)
		if l.crash.isDead() {
			crashes++
			l.bury()
			l = w.live(0)
			w.eventually(func() bool {
				return w.count(owner, "did one")+w.count(owner, "do one") == 1 && w.count(owner, "said two") == 1 && w.count(owner, "did three")+w.count(owner, "do three") == 1
			}, "step %d: not all is answered", at)
			w.settled(l)
		}
		w.checkOnce(messages, l.crash.at == 0)
		l.close()
		w.telegram.Close()
		if t.Failed() {
			t.Fatalf("dead at step %d", at)
		}
		if over {
			break
		}
	}
	t.Logf("died at %d steps", crashes)
	if crashes < 20 {
		t.Errorf("died at %d steps only", crashes)
	}
}

// faulty goes wrong in a fraction of all calls, at random but the same for a seed.
func faulty(seed uint64, share float64) func(string) channeltest.Fault {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 7))
	return func(string) channeltest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Float64() > share {
			return channeltest.None
		}
		return channeltest.Fault(r.IntN(int(channeltest.Faults)))
	}
}

func TestEveryReplyIsDeliveredOnceOverABadNetwork(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 1
	}
	if os.Getenv("PASSEPARTOUT_SOAK") != "" {
		seeds = 400
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t)
			l := w.live(0)
			w.pair(l, owner, proto.RoleOwner)
			w.settled(l)
			l.close()
			w.telegram.Misbehave(faulty(uint64(seed), 0.4), seed%2 == 0, seed%3 == 0)
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			var messages []string
			l = w.live(1 + r.IntN(60))
			for i := range 6 {
				m := fmt.Sprintf("%s m%d", []string{"do", "say"}[r.IntN(2)], i)
				messages = append(messages, m)
				w.telegram.Say(owner, m)
				if i == 2 && seed%2 == 0 { // what follows comes with what was
					w.eventually(func() bool { return l.crash.isDead() || w.telegram.Waiting() == 0 }, "nothing is acknowledged")
				}
				if i == 3 { // one life ends on the way, if it has not done so
					l.stop()
					if l.crash.isDead() {
						l.bury()
					} else {
						l.close()
					}
					l = w.live(0)
				}
			}
			w.eventually(func() bool {
				for i, m := range messages {
					if w.count(owner, fmt.Sprintf("did m%d", i))+w.count(owner, fmt.Sprintf("said m%d", i))+w.count(owner, fmt.Sprintf("%q", m)) == 0 {
						return false
					}
				}
				return true
			}, "not all is answered")
			w.settled(l)
			w.checkOnce(messages, true)
		})
	}
}
