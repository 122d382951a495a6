package config

import (
	"fmt"
	"io"
	"log/slog"
)

// A Secret is a value that may be used but not shown. It is held by a closure,
// so that printing a structure with a Secret in an unexported field, where fmt
// does not ask the value how to print itself, shows nothing either.
type Secret struct{ reveal func() string }

// NewSecret wraps a value.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{func() string { return value }}
}

// Reveal returns the value itself, for the one place that needs it.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s.reveal != nil }

// String says only whether there is a value.
func (s Secret) String() string {
	if s.reveal == nil {
		return "[not set]"
	}
	return "[secret]"
}

// Format prints [Secret.String], whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is [Secret.String], for JSON and all other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is [Secret.String].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
