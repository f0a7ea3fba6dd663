package cohort

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

// Connections are the authenticated links of a cohort.
type Connections struct {
	Members []*channel.Channel
	Client  *channel.Channel
}

// Close closes all links; with an error, each party is sent that the inference failed.
func (c *Connections) Close(err error) {
	for _, link := range append(c.Members, c.Client) {
		if link == nil {
			continue
		}
		if err != nil {
			link.Abort(channel.Internal, "the inference failed at another party or at the coordinator")
		}
		link.Close()
	}
}

type arrival struct {
	link *channel.Channel
	hello
	err error
}

// Accept waits until every member and a client have come, and names who has not when patience ends. It closes the listener.
func Accept(listener *channel.Listener, s *Setup, patience, timeout time.Duration) (*Connections, error) {
	arrivals := make(chan arrival)
	over := make(chan struct{})
	defer close(over)
	go acceptAll(listener, timeout, arrivals, over)
	defer listener.Close()
	connections := &Connections{Members: make([]*channel.Channel, s.Members)}
	limit := time.After(patience)
	for waiting := s.Members + 1; waiting > 0; {
		select {
		case came := <-arrivals:
			if err := connections.admit(s, came); err != nil {
				if came.link != nil {
					session.GiveUp(came.link, err)
					came.link.Close()
				}
				continue // a refused party does not end the wait
			}
			waiting--
		case <-limit:
			err := connections.missing(patience)
			connections.Close(err)
			return nil, err
		}
	}
	return connections, nil
}

func (c *Connections) admit(s *Setup, came arrival) error {
	switch {
	case came.err != nil:
		return refuse(channel.BadRequest, "%v", came.err)
	case came.Role == roleMember && came.link.PeerName() != memberName(came.Member):
		return refuse(channel.BadRequest, "the certificate of %q is not that of member %d", came.link.PeerName(), came.Member)
	case came.Program != s.Program.Hash || came.Members != s.Members:
		return refuse(channel.BadRequest, "this cohort has %d members and program %.16s", s.Members, s.Program.Hash)
	case came.Light != s.Light:
		return refuse(channel.NotAllowed, "the results of this cohort are flooded %s: all its parties must ask for that", flooding(s.Light))
	case came.Role == roleClient && c.Client == nil:
		c.Client = came.link
	case came.Role == roleMember && came.Member >= 0 && came.Member < s.Members && c.Members[came.Member] == nil:
		c.Members[came.Member] = came.link
	default:
		return refuse(channel.BadRequest, "%s %d is here already or does not exist", came.Role, came.Member)
	}
	return nil
}

func refuse(reason channel.Reason, format string, arguments ...any) error {
	return &session.Refusal{Reason: reason, Text: fmt.Sprintf(format, arguments...)}
}

func flooding(light bool) string {
	if light {
		return "lightly (--flooding light)"
	}
	return "statistically (--flooding statistical)"
}

func (c *Connections) missing(patience time.Duration) error {
	var names []string
	for member, link := range c.Members {
		if link == nil {
			names = append(names, fmt.Sprintf("member %d", member))
		}
	}
	if c.Client == nil {
		names = append(names, "the client")
	}
	return &channel.Error{
		Family: channel.FamilyLink,
		Text:   fmt.Sprintf("%s has not come within %v", strings.Join(names, ", "), patience),
	}
}

func acceptAll(listener *channel.Listener, timeout time.Duration, arrivals chan<- arrival, over <-chan struct{}) {
	for {
		raw, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		go func() {
			came := handshake(listener, raw, timeout)
			select {
			case arrivals <- came:
			case <-over:
				raw.Close()
			}
		}()
	}
}

func handshake(listener *channel.Listener, raw net.Conn, timeout time.Duration) arrival {
	link, err := listener.Handshake(raw, timeout)
	if err != nil {
		return arrival{err: err}
	}
	if err := session.Greet(link); err != nil {
		return arrival{link: link, err: err}
	}
	text, err := link.ReceiveUpTo(maxHello)
	if err != nil {
		return arrival{link: link, err: err}
	}
	came := arrival{link: link}
	came.err = json.Unmarshal(text, &came.hello)
	return came
}
