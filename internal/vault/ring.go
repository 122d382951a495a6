package vault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// A Ring keeps the keys of vaults, by the vaults' directories.
type Ring interface {
	Get(dir string) (string, error)
	Set(dir, key string) error
	Delete(dir string) error
}

// SystemRing is the keyring of this desktop session, nil where there is none. On
// Linux it is whoever answers as the Secret Service on the session's bus; a bus is
// never started for it.
func SystemRing(environ []string) Ring {
	if runtime.GOOS == "darwin" {
		return systemRing{}
	}
	for _, kv := range environ {
		switch key, value, _ := strings.Cut(kv, "="); {
		case key == "DBUS_SESSION_BUS_ADDRESS" && value != "" && !strings.HasPrefix(value, "autolaunch:") && value != "disabled:":
			return systemRing{}
		case key == "XDG_RUNTIME_DIR" && filepath.IsAbs(value):
			if st, err := os.Stat(filepath.Join(value, "bus")); err == nil && st.Mode()&os.ModeSocket != 0 {
				return systemRing{}
			}
		}
	}
	return nil
}

type systemRing struct{}

const (
	service  = "passepartout"
	ringWait = 20 * time.Second // a person may have to unlock it
)

func (systemRing) Get(dir string) (string, error) {
	var key string
	err := within(ringWait, func() (err error) {
		key, err = keyring.Get(service, dir)
		return err
	})
	if err != nil {
		return "", err
	}
	return key, nil
}

func (systemRing) Set(dir, key string) error {
	return within(ringWait, func() error { return keyring.Set(service, dir, key) })
}

func (systemRing) Delete(dir string) error {
	err := within(ringWait, func() error { return keyring.Delete(service, dir) })
	if errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return err
}

// within bounds a call that cannot be interrupted: a keyring that asks a person
// who is not there must not keep the daemon from starting. A call that never
// returns keeps its goroutine; the process is told and goes on without a vault.
func within(d time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		return fmt.Errorf("it did not answer within %v", d)
	}
}
