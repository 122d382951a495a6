package llm

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Class is the kind of a failure. The zero Class is an unexplained one.
type Class string

// The classes. What follows from each stands in [steps].
const (
	classRate      Class = "rate-limit"     // too many requests; After says when to come back
	classQuota     Class = "quota"          // the account is out of money
	classAuth      Class = "auth"           // the key is missing, wrong or not allowed this
	classOverload  Class = "overload"       // the provider is too busy
	classContext   Class = "context-length" // the prompt does not fit the model
	classRefused   Class = "refused"        // the provider declined the content
	classMalformed Class = "malformed"      // the answer is not in the provider's own format
	classTimeout   Class = "timeout"        // no answer began in time
	classStalled   Class = "stalled"        // an answer began and stopped coming
	classNetwork   Class = "network"        // the connection failed or broke
	classServer    Class = "server"         // the provider broke
	classNoModel   Class = "no-model"       // the provider does not have the model
	classInvalid   Class = "invalid"        // the provider does not understand the request
	classBudget    Class = "budget"         // the call would exceed a cap; nothing was sent
	classPrivate   Class = "private"        // the text may not leave this machine; nothing was sent
	classOpen      Class = "breaker-open"   // the provider failed moments ago; nothing was sent
	classPanic     Class = "panic"          // our own code failed
)

// A step is what follows from a failure.
type step struct {
	retry bool          // the same provider may be asked again at once
	trips bool          // counts towards opening the breaker
	shuts time.Duration // opens the breaker at once for so long
}

// steps is the table the cascade acts on. After every class the next provider is
// tried.
var steps = map[Class]step{
	classRate:      {retry: true, trips: true},
	classQuota:     {shuts: 10 * time.Minute},
	classAuth:      {shuts: 10 * time.Minute},
	classOverload:  {retry: true, trips: true},
	classContext:   {},
	classRefused:   {},
	classMalformed: {trips: true},
	classTimeout:   {trips: true},
	classStalled:   {trips: true},
	classNetwork:   {retry: true, trips: true},
	classServer:    {retry: true, trips: true},
	classNoModel:   {},
	classInvalid:   {},
	classBudget:    {},
	classPrivate:   {},
	classOpen:      {},
	classPanic:     {trips: true},
}

// An Error is one provider's failure.
type Error struct {
	Provider string // "provider/model"
	Class    Class
	After    time.Duration // when to come back, if the provider said
	Sent     bool          // the provider may have done work, and may charge for it
	Err      error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Provider, e.Class, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// An ExhaustedError is the end of a cascade: every provider failed, and how.
type ExhaustedError struct {
	Attempts []*Error
}

func (e *ExhaustedError) Error() string {
	if len(e.Attempts) == 0 {
		return "neural cascade failure: no provider is configured"
	}
	lines := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		lines[i] = a.Error()
	}
	return "neural cascade failure: all providers exhausted: " + strings.Join(lines, "; ")
}

// Unwrap returns the attempts.
func (e *ExhaustedError) Unwrap() []error {
	out := make([]error, len(e.Attempts))
	for i, a := range e.Attempts {
		out[i] = a
	}
	return out
}

// Explain is the failure for the person: what was tried, and what would help.
func (e *ExhaustedError) Explain() string {
	var b strings.Builder
	b.WriteString("Neural Cascade Failure: no model answered.")
	if e.private() {
		b.WriteString("\nThis conversation has read private text. From then on only a model on this machine may answer it; " + privateWay + ".")
	}
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "\n  %s  %s: %v", a.Provider, a.Class, a.Err)
		if h := remedies[a.Class]; h != "" {
			fmt.Fprintf(&b, " (%s)", h)
		}
	}
	if len(e.Attempts) == 0 {
		b.WriteString(" No provider is configured, or none that is answers; `passepartout models` shows what there is.")
	}
	return b.String()
}

// private reports whether a model was not asked because of what the conversation
// holds.
func (e *ExhaustedError) private() bool {
	return slices.ContainsFunc(e.Attempts, func(a *Error) bool { return a.Class == classPrivate })
}

// privateWay is how to go on when private text keeps the models in the cloud away.
const privateWay = "start one, such as Ollama, or begin a conversation that has not read it: /new"

// remedies say what a person can do about a class.
var remedies = map[Class]string{
	classAuth:    "check the provider's key",
	classQuota:   "the account needs credit",
	classContext: "lower CONTEXT_MAX_TOKENS or choose a model with a longer context",
	classBudget:  "see `passepartout cost`; the caps are settings",
	classNoModel: "see `passepartout models`",
	classNetwork: "is it running, and reachable?",
	classTimeout: "REQUEST_TIMEOUT says how long to wait",
}

var errStalled = errors.New("nothing came for too long")

// signs are what providers write into the body of an error, in the order in which
// they are looked for. Every sign was taken from a provider's documentation.
var signs = []struct {
	sign  string
	class Class
}{
	{"insufficient_quota", classQuota},
	{"credit balance is too low", classQuota},
	{"billing", classQuota},
	{"insufficient balance", classQuota},
	{"context_length_exceeded", classContext},
	{"maximum context length", classContext},
	{"context window", classContext},
	{"prompt is too long", classContext},
	{"exceeds the available context size", classContext},
	{"exceed_context_size", classContext},
	{"input token count", classContext},
	{"exceeds the context length", classContext},
	{"request_too_large", classContext},
	{"content_policy", classRefused},
	{"content_filter", classRefused},
	{"content management policy", classRefused},
	{"overloaded", classOverload},
	{"api key not valid", classAuth},
	{"api_key_invalid", classAuth},
	{"invalid_api_key", classAuth},
	{"model_not_found", classNoModel},
}

// classify finds the class of an HTTP error by its status and body.
func classify(status int, body string) Class {
	low := strings.ToLower(body)
	if status < 500 || status == http.StatusServiceUnavailable {
		for _, s := range signs {
			if strings.Contains(low, s.sign) {
				return s.class
			}
		}
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return classAuth
	case http.StatusPaymentRequired:
		return classQuota
	case http.StatusNotFound:
		return classNoModel
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return classTimeout
	case http.StatusRequestEntityTooLarge:
		return classContext
	case http.StatusTooManyRequests:
		return classRate
	case http.StatusServiceUnavailable, 529: // 529 is Anthropic's "overloaded"
		return classOverload
	}
	if status >= 500 {
		return classServer
	}
	return classInvalid
}

// kinds maps the names of errors inside a stream to classes: there is no status.
var kinds = map[string]Class{
	"rate_limit_error": classRate, "rate_limit_exceeded": classRate, "resource_exhausted": classRate, "429": classRate,
	"overloaded_error": classOverload, "unavailable": classOverload, "503": classOverload, "server_overloaded": classOverload,
	"authentication_error": classAuth, "permission_error": classAuth, "invalid_api_key": classAuth, "401": classAuth,
	"billing_error": classQuota, "insufficient_quota": classQuota, "402": classQuota,
	"context_length_exceeded": classContext, "request_too_large": classContext, "exceed_context_size_error": classContext,
	"content_policy_violation": classRefused, "content_filter": classRefused,
	"timeout_error": classTimeout, "not_found_error": classNoModel, "model_not_found": classNoModel,
	"invalid_request_error": classInvalid,
}

// streamClass finds the class of an error that came in the middle of a stream.
func streamClass(kind, message string) Class {
	if c, ok := kinds[strings.ToLower(kind)]; ok && c != classInvalid {
		return c
	}
	low := strings.ToLower(message)
	for _, s := range signs {
		if strings.Contains(low, s.sign) {
			return s.class
		}
	}
	if c, ok := kinds[strings.ToLower(kind)]; ok {
		return c
	}
	return classServer
}

// retryAfter reads when a provider wants to be asked again, at the latest after a
// day: whoever says more is mistaken.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	if ms, err := strconv.Atoi(h.Get("retry-after-ms")); err == nil && ms > 0 {
		return time.Duration(min(ms, int(most/time.Millisecond))) * time.Millisecond
	}
	v := h.Get("retry-after")
	if s, err := strconv.Atoi(v); err == nil && s > 0 {
		return time.Duration(min(s, int(most/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return min(at.Sub(now), most)
	}
	return 0
}
