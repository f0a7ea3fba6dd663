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

// Meeting is everybody who came.
type Meeting struct {
	Members []*channel.Channel
	Client  *channel.Channel
}

// Close ends all conversations; with an error, everybody is told that it is over.
func (m *Meeting) Close(err error) {
	for _, link := range append(m.Members, m.Client) {
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

// Meet waits until every member and a client have come, and names who has not when patience ends. It closes the listener.
func Meet(listener *channel.Listener, s *Setup, patience, timeout time.Duration) (*Meeting, error) {
	arrivals := make(chan arrival)
	over := make(chan struct{})
	defer close(over)
	go accept(listener, timeout, arrivals, over)
	defer listener.Close()
	meeting := &Meeting{Members: make([]*channel.Channel, s.Members)}
	limit := time.After(patience)
	for missing := s.Members + 1; missing > 0; {
		select {
		case came := <-arrivals:
			if err := meeting.seat(s, came); err != nil {
				if came.link != nil {
					session.GiveUp(came.link, err)
					came.link.Close()
				}
				continue // a stranger does not end the meeting
			}
			missing--
		case <-limit:
			err := meeting.absent(patience)
			meeting.Close(err)
			return nil, err
		}
	}
	return meeting, nil
}

func (m *Meeting) seat(s *Setup, came arrival) error {
	switch {
	case came.err != nil:
		return unseated(channel.BadRequest, "%v", came.err)
	case came.Role == roleMember && came.link.PeerName() != memberName(came.Member):
		return unseated(channel.BadRequest, "the certificate of %q is not that of member %d", came.link.PeerName(), came.Member)
	case came.Program != s.Program.Hash || came.Members != s.Members:
		return unseated(channel.BadRequest, "this meeting is for %d members and program %.16s", s.Members, s.Program.Hash)
	case came.Light != s.Light:
		return unseated(channel.NotAllowed, "the results of this cohort are flooded %s: all its parties must ask for that", flooding(s.Light))
	case came.Role == roleClient && m.Client == nil:
		m.Client = came.link
	case came.Role == roleMember && came.Member >= 0 && came.Member < s.Members && m.Members[came.Member] == nil:
		m.Members[came.Member] = came.link
	default:
		return unseated(channel.BadRequest, "the seat of %s %d is taken or does not exist", came.Role, came.Member)
	}
	return nil
}

func unseated(reason channel.Reason, format string, arguments ...any) error {
	return &session.Refusal{Reason: reason, Text: fmt.Sprintf(format, arguments...)}
}

func flooding(light bool) string {
	if light {
		return "lightly (--flooding light)"
	}
	return "statistically (--flooding statistical)"
}

func (m *Meeting) absent(patience time.Duration) error {
	var names []string
	for member, link := range m.Members {
		if link == nil {
			names = append(names, fmt.Sprintf("member %d", member))
		}
	}
	if m.Client == nil {
		names = append(names, "the client")
	}
	return &channel.Error{
		Family: channel.FamilyLink,
		Text:   fmt.Sprintf("%s has not come within %v", strings.Join(names, ", "), patience),
	}
}

func accept(listener *channel.Listener, timeout time.Duration, arrivals chan<- arrival, over <-chan struct{}) {
	for {
		raw, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		go func() {
			came := welcome(listener, raw, timeout)
			select {
			case arrivals <- came:
			case <-over:
				raw.Close()
			}
		}()
	}
}

func welcome(listener *channel.Listener, raw net.Conn, timeout time.Duration) arrival {
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
