package channel

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deaf is a connection to a peer that said something and listens no more.
type deaf struct {
	net.Conn
	said io.Reader
}

func (d deaf) Read(into []byte) (int, error)    { return d.said.Read(into) }
func (d deaf) Write([]byte) (int, error)        { return 0, syscall.EPIPE }
func (d deaf) SetReadDeadline(time.Time) error  { return nil }
func (d deaf) SetWriteDeadline(time.Time) error { return nil }

// recorded is a connection that keeps what is written.
type recorded struct {
	net.Conn
	bytes.Buffer
}

func (r *recorded) Read(into []byte) (int, error)    { return r.Buffer.Read(into) }
func (r *recorded) Write(data []byte) (int, error)   { return r.Buffer.Write(data) }
func (r *recorded) SetWriteDeadline(time.Time) error { return nil }

func TestWhoStillSendsHearsWhyThePeerGaveUp(t *testing.T) {
	abort := &recorded{}
	Over(abort, time.Second).Abort(Busy, "the service is full")
	data := &recorded{}
	if err := Over(data, time.Second).Send([]byte("no abort")); err != nil {
		t.Fatal(err)
	}
	for said, family := range map[string]string{
		abort.String():                 FamilyBusy,
		data.String():                  FamilyLink,
		"":                             FamilyLink,
		"\x02\xff\xff\xff\xff":         FamilyLink,
		abort.String()[:headerBytes+1]: FamilyLink,
		strings.Repeat("\x00", 1<<10):  FamilyLink,
	} {
		err := Over(deaf{said: strings.NewReader(said)}, time.Second).Send([]byte("data"))
		var known *Error
		if !errors.As(err, &known) || known.Family != family {
			t.Errorf("%q: %v", said, err)
		}
		if family == FamilyBusy && !strings.Contains(err.Error(), "the service is full") {
			t.Errorf("%v", err)
		}
	}
}
