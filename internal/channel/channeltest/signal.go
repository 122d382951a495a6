package channeltest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// SignalAccount is the number of the account that the stand-in has.
const SignalAccount = "+15550001"

// A Sent is one message as its receiver sees it.
type Sent struct {
	To        string
	Timestamp int64
	Text      string
	Edits     int
}

// Signal stands in for a signal-cli that runs as a daemon with
// --receive-mode=manual: it hands messages to whoever has subscribed, once.
type Signal struct {
	Address string
	ln      net.Listener
	wg      sync.WaitGroup

	// Mute is asked before each call is answered; true leaves it unanswered.
	Mute func(method string) bool
	// Reverse answers calls in the opposite order, two at a time.
	Reverse bool

	mu       sync.Mutex // guards what follows
	conns    map[net.Conn]bool
	listener net.Conn // who has subscribed
	waiting  []map[string]any
	given    []map[string]any
	sent     []Sent
	clock    int64
	subs     int64
	calls    map[string]int
	requests []json.RawMessage
	receipts []int64
	files    map[string][]byte
}

// NewSignal listens on a socket in a directory.
func NewSignal(dir string) (*Signal, error) {
	s := &Signal{Address: filepath.Join(dir, "signal.sock"), conns: map[net.Conn]bool{}, clock: 1790000000000, calls: map[string]int{}, files: map[string][]byte{}}
	return s, s.Start()
}

// Start listens, again after a Stop.
func (s *Signal) Start() error {
	_ = os.Remove(s.Address) // left by an earlier life
	ln, err := net.Listen("unix", s.Address)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.ln = ln
	s.mu.Unlock()
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(c) })
		}
	})
	return nil
}

// Stop ends the daemon and its connections; what was not handed over waits.
func (s *Signal) Stop() {
	s.mu.Lock()
	_ = s.ln.Close()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// HangUp cuts every connection.
func (s *Signal) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.listener = nil
}

// Say makes somebody write. More are further fields of the data message.
func (s *Signal) Say(uuid, text string, more ...map[string]any) {
	s.mu.Lock()
	s.clock++
	m := map[string]any{"timestamp": s.clock, "message": text, "expiresInSeconds": 0, "viewOnce": false}
	for _, x := range more {
		for k, v := range x {
			m[k] = v
		}
	}
	e := s.envelope(uuid)
	e["dataMessage"] = m
	s.mu.Unlock()
	s.Hand(e)
}

// envelope is what every message comes in.
func (s *Signal) envelope(uuid string) map[string]any {
	return map[string]any{
		"source": uuid, "sourceNumber": nil, "sourceUuid": uuid, "sourceName": "Person", "sourceDevice": 1, "timestamp": s.clock,
		"serverReceivedTimestamp": s.clock, "serverDeliveredTimestamp": s.clock,
	}
}

// Edit makes somebody change what they wrote last.
func (s *Signal) Edit(uuid, text string) {
	s.mu.Lock()
	target := s.clock
	s.clock++
	e := s.envelope(uuid)
	e["editMessage"] = map[string]any{"targetSentTimestamp": target, "dataMessage": map[string]any{"timestamp": s.clock, "message": text}}
	s.mu.Unlock()
	s.Hand(e)
}

// Hand puts any envelope in line.
func (s *Signal) Hand(envelope map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, envelope)
	s.flush()
}

// Again hands everything over once more.
func (s *Signal) Again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, s.given...)
	s.given = nil
	s.flush()
}

func (s *Signal) flush() {
	for s.listener != nil && len(s.waiting) > 0 {
		note := map[string]any{"jsonrpc": "2.0", "method": "receive", "params": map[string]any{
			"subscription": s.subs, "result": map[string]any{"envelope": s.waiting[0], "account": SignalAccount},
		}}
		if writeLine(s.listener, note) != nil {
			s.listener = nil
			return
		}
		s.given = append(s.given, s.waiting[0])
		s.waiting = s.waiting[1:]
	}
}

// Attach makes an attachment that can be fetched, as fields of a message.
func (s *Signal) Attach(id string, contents []byte) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[id] = contents
	return map[string]any{"attachments": []any{map[string]any{
		"contentType": "text/plain", "filename": "--notes.txt", "id": id, "size": len(contents),
	}}}
}

// Sent is what was sent to somebody, as they see it now.
func (s *Signal) Sent(to string) (out []Sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.sent {
		if m.To == to {
			out = append(out, m)
		}
	}
	return out
}

// Calls is how often a method was called.
func (s *Signal) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Requests are all calls as they came.
func (s *Signal) Requests() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Receipts are the times of the messages that were marked as read.
func (s *Signal) Receipts() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.receipts)
}

// Waiting is how many messages were not handed over.
func (s *Signal) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

func writeLine(c net.Conn, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.Write(append(raw, '\n'))
	return err
}

func (s *Signal) serve(c net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		if s.listener == c {
			s.listener = nil
		}
		s.mu.Unlock()
		_ = c.Close()
	}()
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, 1<<20)
	var held map[string]any
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params map[string]any  `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			return
		}
		s.mu.Lock()
		s.calls[m.Method]++
		s.requests = append(s.requests, slices.Clone(json.RawMessage(lines.Bytes())))
		mute := s.Mute
		s.mu.Unlock()
		if mute != nil && mute(m.Method) {
			continue
		}
		s.mu.Lock()
		answer := s.call(c, m.Method, m.Params)
		answer["jsonrpc"], answer["id"] = "2.0", m.ID
		if s.Reverse && held == nil && m.Method == "send" {
			held = answer
			s.mu.Unlock()
			continue
		}
		err := writeLine(c, answer)
		if held != nil {
			err = writeLine(c, held)
			held = nil
		}
		if m.Method == "subscribeReceive" {
			s.flush()
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *Signal) call(c net.Conn, method string, p map[string]any) map[string]any {
	refuse := func(code int, text string) map[string]any {
		return map[string]any{"error": map[string]any{"code": code, "message": text, "data": nil}}
	}
	switch method {
	case "version":
		return map[string]any{"result": map[string]any{"version": "0.13.19"}}
	case "subscribeReceive":
		s.subs++
		s.listener = c
		return map[string]any{"result": s.subs}
	case "unsubscribeReceive":
		s.listener = nil
		return map[string]any{"result": map[string]any{}}
	case "sendReceipt":
		times, _ := p["targetTimestamp"].([]any)
		for _, t := range times {
			s.receipts = append(s.receipts, number(t))
		}
		return map[string]any{"result": map[string]any{"timestamp": s.clock}}
	case "send":
		to, _ := p["groupId"].(string)
		if rs, ok := p["recipient"].([]any); ok && len(rs) == 1 {
			to, _ = rs[0].(string)
		}
		text, _ := p["message"].(string)
		if to == "" || text == "" {
			return refuse(-32602, "No recipients given")
		}
		s.clock++
		if at := number(p["editTimestamp"]); at != 0 {
			i := slices.IndexFunc(s.sent, func(m Sent) bool { return m.To == to && m.Timestamp == at })
			if i < 0 {
				return refuse(-1, "No message to edit")
			}
			s.sent[i].Text = text
			s.sent[i].Edits++
		} else {
			s.sent = append(s.sent, Sent{To: to, Timestamp: s.clock, Text: text})
		}
		return map[string]any{"result": map[string]any{"timestamp": s.clock, "results": []any{map[string]any{
			"recipientAddress": map[string]any{"uuid": to, "number": nil}, "type": "SUCCESS",
		}}}}
	case "getAttachment":
		id, _ := p["id"].(string)
		raw, ok := s.files[id]
		if !ok {
			return refuse(-1, "Could not find attachment with ID: "+id)
		}
		return map[string]any{"result": map[string]any{"data": base64.StdEncoding.EncodeToString(raw)}}
	}
	return refuse(-32601, fmt.Sprintf("Method not implemented: %s", method))
}
