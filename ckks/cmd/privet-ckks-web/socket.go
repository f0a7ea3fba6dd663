//go:build js

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall/js"
	"time"
)

const (
	// messageBytes is the most that one message of the WebSocket carries.
	messageBytes = 64 << 10
	// sendingBytes may wait in the browser to be sent, receivedBytes to be read.
	sendingBytes  = 1 << 20
	receivedBytes = 64 << 20
	pollInterval  = 2 * time.Millisecond
)

// socket is a browser's WebSocket as a connection: a stream of bytes in binary messages. One goroutine reads, one writes.
type socket struct {
	web js.Value
	// changed has an element when fields below have changed.
	changed   chan struct{}
	mutex     sync.Mutex
	queue     [][]byte
	queued    int
	open      bool
	err       error
	read      time.Time
	write     time.Time
	callbacks []js.Func
}

// dial connects to an address such as wss://HOST/PATH.
func dial(address string, patience time.Duration) (*socket, error) {
	s := &socket{web: js.Global().Get("WebSocket").New(address), changed: make(chan struct{}, 1)}
	s.web.Set("binaryType", "arraybuffer")
	s.on("open", func(js.Value) { s.open = true })
	s.on("message", s.message)
	s.on("close", func(event js.Value) { s.fail(closed(event)) })
	limit := time.Now().Add(patience)
	for {
		s.mutex.Lock()
		open, err := s.open, s.err
		s.mutex.Unlock()
		if open || err != nil {
			return s, err
		}
		if err := s.wait(limit); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
}

// on calls `act` for each event of a kind, with the mutex held.
func (s *socket) on(kind string, act func(event js.Value)) {
	callback := js.FuncOf(func(_ js.Value, arguments []js.Value) any {
		s.mutex.Lock()
		act(arguments[0])
		s.mutex.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
		return nil
	})
	s.callbacks = append(s.callbacks, callback)
	s.web.Call("addEventListener", kind, callback)
}

func (s *socket) message(event js.Value) {
	data := js.Global().Get("Uint8Array").New(event.Get("data"))
	if s.queued += data.Length(); s.queued > receivedBytes {
		s.fail(errors.New("the service sent more than can be read"))
		return
	}
	chunk := make([]byte, data.Length())
	js.CopyBytesToGo(chunk, data)
	s.queue = append(s.queue, chunk)
}

func (s *socket) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func closed(event js.Value) error {
	if reason := event.Get("reason").String(); reason != "" {
		return fmt.Errorf("the service ended the session: %s", reason)
	}
	return fmt.Errorf("the connection was closed (%d)", event.Get("code").Int())
}

func (s *socket) wait(limit time.Time) error {
	timer := time.NewTimer(time.Until(limit))
	defer timer.Stop()
	select {
	case <-s.changed:
		return nil
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

// Read implements net.Conn.
func (s *socket) Read(into []byte) (int, error) {
	for {
		s.mutex.Lock()
		if len(s.queue) > 0 {
			count := copy(into, s.queue[0])
			s.queued -= count
			if s.queue[0] = s.queue[0][count:]; len(s.queue[0]) == 0 {
				s.queue = s.queue[1:]
			}
			s.mutex.Unlock()
			return count, nil
		}
		err := s.err
		s.mutex.Unlock()
		if err != nil {
			return 0, err
		}
		if err := s.wait(s.read); err != nil {
			return 0, err
		}
	}
}

// Write implements net.Conn. It returns when the browser has not much left to send.
func (s *socket) Write(data []byte) (int, error) {
	written := 0
	for written < len(data) {
		s.mutex.Lock()
		err := s.err
		s.mutex.Unlock()
		if err != nil {
			return written, err
		}
		if s.web.Get("bufferedAmount").Int() > sendingBytes {
			if time.Now().After(s.write) {
				return written, os.ErrDeadlineExceeded
			}
			time.Sleep(pollInterval)
			continue
		}
		chunk := data[written:min(written+messageBytes, len(data))]
		array := js.Global().Get("Uint8Array").New(len(chunk))
		js.CopyBytesToJS(array, chunk)
		s.web.Call("send", array)
		written += len(chunk)
	}
	return written, nil
}

// Close implements net.Conn.
func (s *socket) Close() error {
	for i, kind := range []string{"open", "message", "close"} {
		s.web.Call("removeEventListener", kind, s.callbacks[i])
		s.callbacks[i].Release()
	}
	s.web.Call("close")
	return nil
}

// LocalAddr implements net.Conn; a browser tells no address.
func (s *socket) LocalAddr() net.Addr { return nil }

// RemoteAddr implements net.Conn; a browser tells no address.
func (s *socket) RemoteAddr() net.Addr { return nil }

// SetDeadline implements net.Conn.
func (s *socket) SetDeadline(at time.Time) error {
	s.read, s.write = at, at
	return nil
}

// SetReadDeadline implements net.Conn.
func (s *socket) SetReadDeadline(at time.Time) error {
	s.read = at
	return nil
}

// SetWriteDeadline implements net.Conn.
func (s *socket) SetWriteDeadline(at time.Time) error {
	s.write = at
	return nil
}
