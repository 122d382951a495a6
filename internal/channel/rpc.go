package channel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Limits of a connection.
const (
	maxRPC   = 32 << 20 // bytes of one line: an attachment is one
	rpcQueue = 1024     // notifications that may wait
)

// Codes of JSON-RPC.
const (
	rpcNoMethod  = -32601
	rpcBadParams = -32602
)

// An rpcConn is one connection that carries JSON-RPC 2.0, an object a line:
// calls with their answers in any order, and notifications in theirs.
type rpcConn struct {
	nc    net.Conn
	quick time.Duration
	notes chan json.RawMessage // params of notifications, in order
	done  chan struct{}        // closed when the connection is over
	ended chan struct{}        // closed when its reader is

	writing sync.Mutex // keeps lines whole

	mu      sync.Mutex // guards what follows
	next    int64
	pending map[int64]chan rpcMessage
	err     error // why it is over
	heard   time.Time
}

type rpcMessage struct {
	Version string          `json:"jsonrpc"`
	ID      *int64          `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// An rpcError is the other side's refusal.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%d %s", e.Code, line(e.Message, 200)) }

// newRPC takes a connection over. Its reader ends after close was called.
func newRPC(nc net.Conn, quick time.Duration) *rpcConn {
	c := &rpcConn{
		nc: nc, quick: quick, notes: make(chan json.RawMessage, rpcQueue), done: make(chan struct{}), ended: make(chan struct{}),
		pending: map[int64]chan rpcMessage{}, heard: time.Now(),
	}
	go func() {
		defer close(c.ended)
		c.read()
	}()
	return c
}

// close ends the connection, and says why to all who wait. Only the first reason
// counts.
func (c *rpcConn) close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = why
	close(c.done)
	_ = c.nc.Close() // it is given up, however that ends
}

func (c *rpcConn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// silence is how long nothing was handed over.
func (c *rpcConn) silence() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.heard)
}

// stir begins counting the silence anew.
func (c *rpcConn) stir() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
}

// read sorts what comes in. A line that is no JSON ends the connection: what
// follows it cannot be trusted to be whole.
func (c *rpcConn) read() {
	lines := bufio.NewScanner(c.nc)
	lines.Buffer(make([]byte, 0, 64<<10), maxRPC)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var m rpcMessage
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			c.close(fmt.Errorf("a line is no JSON-RPC: %w", err))
			return
		}
		if m.Method != "" {
			if m.Method == "receive" && !c.note(m.Params) {
				return
			}
			continue
		}
		c.answer(m)
	}
	err := lines.Err()
	if err == nil {
		err = errors.New("it hung up")
	}
	c.close(err)
}

// note passes a notification on. It waits when nobody takes them: then the other
// side has to wait, too.
func (c *rpcConn) note(params json.RawMessage) bool {
	c.stir()
	select {
	case c.notes <- params:
		return true
	case <-c.done:
		return false
	}
}

func (c *rpcConn) answer(m rpcMessage) {
	if m.ID == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch, ok := c.pending[*m.ID]; ok {
		delete(c.pending, *m.ID)
		ch <- m // has room for one
	}
}

// notification is the next one. What came before the end is still given out.
func (c *rpcConn) notification(ctx context.Context) (json.RawMessage, error) {
	select {
	case p := <-c.notes:
		return p, nil
	default:
	}
	select {
	case p := <-c.notes:
		return p, nil
	case <-c.done:
		select {
		case p := <-c.notes:
			return p, nil
		default:
			return nil, c.why()
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// call calls a method and waits for its answer. One that does not come in time
// ends the connection: half-open ones look like that.
func (c *rpcConn) call(ctx context.Context, method string, params map[string]any, result any) error {
	ch := make(chan rpcMessage, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.pending[id] = ch
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := c.write(id, method, params); err != nil {
		c.close(err)
		return err
	}
	late := time.NewTimer(c.quick)
	defer late.Stop()
	select {
	case m := <-ch:
		if m.Error != nil {
			return fmt.Errorf("%s: %w", method, m.Error)
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("%s: the result is not as documented: %w", method, err)
		}
		return nil
	case <-late.C:
		err := fmt.Errorf("%s: no answer within %v", method, c.quick)
		c.close(err)
		return err
	case <-c.done:
		return fmt.Errorf("%s: %w", method, c.why())
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *rpcConn) write(id int64, method string, params map[string]any) error {
	m := rpcMessage{Version: "2.0", ID: &id, Method: method}
	var err error
	if params != nil {
		if m.Params, err = json.Marshal(params); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.quick)); err != nil {
		return err
	}
	_, err = c.nc.Write(append(raw, '\n'))
	return err
}
