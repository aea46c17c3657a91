package calls

import (
	"context"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// link connects the members' media according to the state of the call. Each of two members hears
// and sees the other, a shared screen replaces its owner's camera, and held legs are not linked.
func (k *call) link() {
	if k.inRoom != nil {
		k.inRoom.link(k)
		return
	}

	people := slices.DeleteFunc(slices.Clone(k.legs), func(l *leg) bool {
		return l.ended || !l.active || l.media == nil || l.member.Type != Person
	})
	for _, l := range people {
		var other *leg
		for _, o := range people {
			if o != l || k.echo {
				other = o
			}
		}
		k.linkTo(l, other)
	}
}

// unlink ends all connections between the members' media.
func (k *call) unlink() {
	for _, l := range k.legs {
		if l.ended || l.media == nil {
			continue
		}
		for _, kind := range []Kind{Audio, Video} {
			l.media.Link(kind, nil)
		}
	}
}

// linkTo sends the audio of l to other, and the video of l or of its newest screen or device with
// video. If other is nil, linkTo stops sending.
func (k *call) linkTo(l, other *leg) {
	apart := other == nil || l.held || other.held
	to := func(from *leg, kind Kind, on bool) {
		if on && !apart {
			from.media.Link(kind, other.media)
		} else {
			from.media.Link(kind, nil)
		}
	}

	video := l
	for _, s := range k.legs {
		if s.member.Parent == l.member.ID && !s.ended && slices.Contains(s.media.Kinds(), Video) {
			video = s
		}
	}
	to(l, Audio, true)
	to(l, Video, video == l)
	for _, s := range k.legs {
		if s.member.Parent == l.member.ID && !s.ended {
			to(s, Audio, false)
			to(s, Video, video == s)
		}
	}
}

// findSource returns the screen or device of l with this member id, or nil.
func (k *call) findSource(l *leg, memberID string) *leg {
	for _, s := range k.legs {
		if s.member.ID == memberID && s.member.Parent == l.member.ID && !s.ended {
			return s
		}
	}
	return nil
}

// sources are the screens and additional devices in a call.
type sources struct{ *call }

// present returns the screens and devices that have not ended.
func (s sources) present() (present []*leg) {
	for _, l := range s.legs {
		if l.active && !l.ended && l.member.Type != Person {
			present = append(present, l)
		}
	}
	return present
}

// drop removes a screen or device that has ended. Otherwise, a client that shares screens one after
// another would fill the memory with their media while the call lasts.
func (s sources) drop(ended *leg) {
	s.legs = slices.DeleteFunc(s.legs, func(l *leg) bool { return l == ended })
}

// addSource adds a screen or an additional device of a member to the call.
func (c *Calls) addSource(ctx context.Context, client Client, cmd Command) error {
	parent := c.legOf(client, cmd.Parent) // a member has the same id as its leg
	if parent == nil {
		return errNoSuchMember
	}
	return runIn(ctx, parent.call, func() error { return parent.addSource(client, cmd) })
}

var errNoSuchMember = problem.New(problem.Invalid, "no_such_member", "memberId must name a member of one of your calls")

func (l *leg) addSource(client Client, cmd Command) error {
	k := l.call
	if l.member.Type != Person {
		return errNoSuchMember // the new leg would stay in the call after the person has left
	}
	if l.ended || !l.active || k.state != InCall {
		return problem.New(problem.Invalid, "no_such_member", "the call has not been answered, or it has ended")
	}

	s := k.newLeg(cmd.Leg, client, l.party)
	s.member.Type, s.member.Parent = cmd.Type, l.member.ID
	s.changes, s.described = l.changes, time.Now()
	if k.inRoom != nil && !k.inRoom.hasPlace(s.member) {
		return errNoPlace
	}

	media, answer, err := k.openMedia(s, cmd.SDP, Terms{Source: true})
	if err != nil {
		return err
	}

	s.media = media
	if !k.addLeg(s) {
		media.Close()
		return problem.Taken("callID", "a call with this callID exists")
	}

	s.active = true
	s.checkSoon()
	s.noteVideo()
	k.link()

	s.tellState(Created)
	s.tell(Event{Kind: EarlyMedia, SDP: answer})
	s.tell(Event{Kind: Answered})
	s.join()
	s.tellState(InCall)
	m := s.member
	k.tellOthers(s, Event{Kind: MemberJoined, Member: &m}) // startScreenShare of the stock SDK waits for it
	return nil
}
