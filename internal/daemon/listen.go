package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"passepartout/internal/proto"
)

// takeLock makes this the only daemon of its state directory. The lock dies with
// the process, so a crash leaves nothing to clean up.
func (d *Daemon) takeLock() error {
	path := filepath.Join(d.s.StateDir, "daemon.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for range 50 {
		if err == nil || !orphaned(path) {
			break
		}
		time.Sleep(20 * time.Millisecond)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		pid, rerr := os.ReadFile(path)
		if rerr != nil || len(pid) == 0 {
			pid = []byte("unknown")
		}
		return errors.Join(fmt.Errorf("%w: process %s holds %s", ErrRunning, strings.TrimSpace(string(pid)), path), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	d.lock = f
	return nil
}

// orphaned reports whether the process a lock names is dead: then a child that it was
// just starting holds the lock, and lets go of it in a moment.
func orphaned(path string) bool {
	raw, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	return err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// listen opens TCP where it is asked for, and then the Unix socket: a client that
// finds the socket finds everything.
func (d *Daemon) listen(ctx context.Context) ([]net.Listener, error) {
	var listeners []net.Listener
	if d.s.TCPAddr != "" {
		tcp, err := listenTCP(ctx, d.s.TCPAddr)
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, tcp)
	}
	unix, err := d.listenUnix(ctx)
	if err != nil { // nobody was taken yet, so nobody uses what is released now
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	for _, tcp := range listeners {
		d.accept(tcp, true)
	}
	d.accept(unix, false)
	return append(listeners, unix), nil
}

// listenUnix opens the socket where only this user can reach it. A socket file
// left behind by a crash is stale: we hold the lock.
func (d *Daemon) listenUnix(ctx context.Context) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(d.s.SocketPath), 0o700); err != nil {
		return nil, err
	}
	if st, err := os.Lstat(d.s.SocketPath); err == nil {
		if st.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is in the way and is no socket", d.s.SocketPath)
		}
		if err := os.Remove(d.s.SocketPath); err != nil {
			return nil, err
		}
	}
	l, err := listenPrivately(ctx, d.s.SocketPath)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}

// listenPrivately makes a socket that never exists with a wider mode: it is made in
// a directory nobody else can enter, and moved. A umask would do that too, for every
// file this process makes at that moment.
func listenPrivately(ctx context.Context, path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".")
	if err != nil {
		return nil, err
	}
	defer os.Remove(dir) //nolint:errcheck // it is empty, or something is wrong already
	made := filepath.Join(dir, "s")
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", made)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return movedListener{l, path}, nil
}

// A movedListener takes its socket with it, wherever that was moved to.
type movedListener struct {
	net.Listener
	path string
}

func (l movedListener) Close() error {
	err := l.Listener.Close()
	if e := os.Remove(l.path); !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

func listenTCP(ctx context.Context, addr string) (net.Listener, error) {
	ap, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	if !ap.IP.IsLoopback() {
		return nil, fmt.Errorf("TCP address %s: want a loopback address", addr)
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", addr)
}

// accept takes clients in the background until the listener is closed.
func (d *Daemon) accept(l net.Listener, auth bool) {
	d.conns.Add(1)
	go func() {
		defer d.conns.Done()
		for {
			nc, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors, most likely: let some be freed
				d.log.Warn("accept", "error", err)
				time.Sleep(20 * time.Millisecond)
				continue
			}
			d.welcome(nc, auth)
		}
	}()
}

// welcome starts serving a client, or turns it away with a reason.
func (d *Daemon) welcome(nc net.Conn, auth bool) {
	who, err := identify(nc)
	if err == nil && d.clients.Load() >= int64(d.s.MaxClients) {
		err = fmt.Errorf("%d clients are connected, and no more are taken", d.s.MaxClients)
	}
	d.clients.Add(1)
	d.open.add(nc)
	d.conns.Add(1)
	go func() {
		defer d.conns.Done()
		defer d.clients.Add(-1)
		defer d.open.remove(nc)
		defer func() {
			if p := recover(); p != nil {
				d.log.Error("a connection failed", "panic", p)
				_ = nc.Close() // nothing more can be done for it
			}
		}()
		if err != nil {
			d.turnAway(nc, err)
			return
		}
		d.serve(nc, who, auth)
	}()
}

func (d *Daemon) turnAway(nc net.Conn, why error) {
	frame, err := proto.AppendFrame(nil, proto.ErrorMessage("connection.refused", why.Error()).Value())
	if err == nil && nc.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		_, err = nc.Write(frame)
	}
	d.log.Warn("turned a client away", "reason", why, "error", errors.Join(err, nc.Close()))
}

// identify says who is at the other end of a connection. On the Unix socket the
// kernel knows; over TCP nobody is known until the handshake proves it.
func identify(nc net.Conn) (proto.Origin, error) {
	uc, ok := nc.(*net.UnixConn)
	if !ok {
		return proto.Origin{Who: "tcp:" + nc.RemoteAddr().String()}, nil
	}
	uid, err := peerUID(uc)
	if err != nil {
		return proto.Origin{}, fmt.Errorf("peer credentials: %w", err)
	}
	if uid != os.Getuid() {
		return proto.Origin{}, fmt.Errorf("user %d is not the owner of this daemon", uid)
	}
	return proto.Origin{Role: proto.RoleOwner, Who: "uid:" + strconv.Itoa(uid)}, nil
}
