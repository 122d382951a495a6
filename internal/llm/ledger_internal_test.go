package llm

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What could not be booked is booked before anything more is spent: a disk that was
// full for a moment must not end the use of models until a restart.
func TestALedgerThatCouldNotBeWrittenIsContinuedWhenItCan(t *testing.T) {
	var saved []Entry
	full := errors.New("no space left")
	fail := false
	l := NewLedger(Caps{}, nil, func(e Entry) error {
		if fail {
			return full
		}
		saved = append(saved, e)
		return nil
	})
	spend := func() error {
		h, err := l.reserve("m", Purpose{}, 5, time.Time{})
		if err == nil {
			l.settle(h, Usage{}, 5, "")
		}
		return err
	}
	if err := spend(); err != nil {
		t.Fatal(err)
	}
	fail = true
	if err := spend(); err != nil { // was allowed before anybody knew
		t.Fatal(err)
	}
	if err := spend(); !errors.Is(err, full) || !strings.Contains(err.Error(), "nothing is spent") {
		t.Errorf("with a full disk: %v", err)
	}
	fail = false
	if err := spend(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if len(saved) != 3 {
		t.Errorf("%d calls are in the books; 3 were made", len(saved))
	}
}
