package calls

import (
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// firstAddresses selects the first 20 of a caller's own addresses. The caller may choose one of
// them to show.
var firstAddresses = page.Query{Size: 20}

// capabilities lists what members of a call between two parties may do, in the SDK's terms. Members
// cannot mute each other. They cannot change volumes, because the server would have to decode the
// audio.
var capabilities = []string{
	"self.mute.audio", "self.mute.video", "self.deaf", "self.raisehand", "digit", "device", "screenshare", "end",
}

// execute carries out a command from the leg's client.
func (l *leg) execute(cmd Command) (Reply, error) {
	switch {
	case l.ended:
		l.call.calls.tellGone(l.client, cmd)
		return Reply{}, nil
	case cmd.Op == Invite:
		return Reply{}, l.reattach(cmd.SDP)
	case cmd.Op == Answer:
		return Reply{}, l.answer(cmd.SDP)
	case cmd.Op == Hangup:
		l.clientHungUp(causeOf(cmd.Cause))
		return Reply{}, nil
	case cmd.Op == Fail:
		l.hangUp(failureOf(cmd.Cause))
		return Reply{}, nil
	case !l.active || l.media == nil:
		return Reply{}, nil // before the answer, other commands do nothing
	}
	return l.act(cmd)
}

// act carries out a command from a member.
func (l *leg) act(cmd Command) (Reply, error) {
	if l.call.inRoom != nil {
		if handled, err := l.actInRoom(cmd); handled {
			return Reply{}, err
		}
	}
	switch cmd.Op {
	case Update:
		answer, err := l.media.Update(cmd.SDP)
		l.noteVideo()
		return Reply{SDP: answer, Held: l.held}, err
	case Hold, Unhold:
		l.hold(cmd.Op == Hold)
		return Reply{Held: l.held}, nil
	case Digits:
		return Reply{}, l.sendDigits(cmd.Digits)
	case List:
		return Reply{Room: l.call.room()}, nil
	case End:
		l.call.end(NormalClearing)
		return Reply{}, nil
	case Mute, Unmute, Deaf, Undeaf, RaiseHand, LowerHand:
		return Reply{}, l.change(cmd)
	}
	return Reply{}, nil
}

// answer connects a ringing leg, unless another leg has already answered.
func (l *leg) answer(sdp string) error {
	k := l.call
	if l.active {
		return nil // SDK 3.27.0 answers twice if it has connected twice
	}
	if !l.mediaLost.IsZero() { // otherwise, media flows already
		l.described = time.Now()
	}
	if s := l.client.Socket; s.Gateway {
		l.media.MoveTo(s.Phone)
	}
	if err := l.media.Accept(sdp); err != nil {
		l.hangUp(refusalOf(err))
		return err
	}

	k.ringTimer.Stop()
	k.uncountRinging(l)
	transferred := k.transfer != nil
	if transferred {
		transferring{k}.replace(l)
	}

	l.active = true
	l.awaitMedia() // a gateway may have sent media before the answer, such as the sound of ringing
	for _, other := range slices.Clone(k.legs) {
		if other != l && other.inbound && !other.active {
			other.leave(LoseRace)
		}
	}

	k.link()
	if transferred {
		transferring{k}.joinTransferred(l)
		return nil
	}

	k.record.CalleeLeg = l.id
	ringer{k}.noteAnswer(l)
	k.caller().awaitMedia()
	k.setState(InCall)

	// The callee's SDK also needs an Answered event: without it, mute does not stop its microphone.
	for _, m := range []*leg{k.caller(), l} {
		m.tell(Event{Kind: Answered})
		m.join()
		m.tellState(InCall)
	}
	k.recordIfWanted()
	return nil
}

// refusalOf returns the cause for an answer that the engine has not accepted.
func refusalOf(err error) Cause {
	if errors.Is(err, problem.Invalid) {
		return Incompatible
	}
	return TemporaryFailure
}

// join notifies the client that it is now a member.
func (l *leg) join() {
	l.tell(Event{Kind: Joined, Room: l.call.room(), Capabilities: l.capabilities()})
	if l.call.inRoom != nil {
		l.tellLayout()
	}
}

// reattach takes the offer of a client that has reloaded its page or lost its media.
func (l *leg) reattach(sdp string) error {
	if !l.active {
		return problem.Taken("callID", "a call with this callID exists")
	}
	answer, err := l.renew(sdp)
	if err != nil {
		return err
	}

	l.mediaLost = time.Now()
	l.tellState(Created)
	l.tell(Event{Kind: EarlyMedia, SDP: answer})
	if l.call.state != InCall {
		l.tellState(l.call.state)
		return nil
	}

	l.tell(Event{Kind: Answered})
	l.join()
	l.tellState(InCall)
	return nil
}

// renew applies the offer of a client that has reconnected, and returns the answer.
func (l *leg) renew(sdp string) (answer string, err error) {
	if l.media != nil {
		defer l.noteVideo()
		return l.media.Renew(sdp)
	}

	// The media was on another node, which was lost.
	k := l.call
	media, answer, err := k.openMedia(l, sdp, Terms{})
	if err != nil {
		return "", err
	}
	l.media = media
	l.applyControls()
	if k.inRoom != nil {
		k.inRoom.mixer.SetVolumes(media, l.member.InputVolume, l.member.OutputVolume)
	}
	k.link()
	l.noteVideo()
	l.media.Record(k.tapOf(l))
	return answer, nil
}

// clientHungUp ends the call because the leg's client hung up. If the leg is a screen or device,
// only the leg ends. If a callee rejects the call, all devices of that callee stop ringing, but
// other callees continue to ring.
func (l *leg) clientHungUp(c Cause) {
	switch {
	case l.isRinging():
		for _, o := range slices.Clone(l.call.legs) {
			if o != l && o.isRinging() && o.party == l.party {
				o.leave(c)
			}
		}
		l.leaveSilently(c)
		ringer{l.call}.legRefused(c)
	default:
		l.departSilently(c)
	}
}

// hold stops media between the leg and the other legs, or resumes it.
func (l *leg) hold(held bool) {
	l.held = held
	l.call.link()
	l.call.keepControls()
}

// maxDigits is the maximum number of digits in one command, and of pressed keys that wait to be handled.
const maxDigits = 64

// sendDigits sends digits to the other side, or to the script that controls the call.
func (l *leg) sendDigits(digits string) error {
	if len(digits) > maxDigits {
		return problem.BadParam("dtmf", "dtmf must have at most %d digits", maxDigits)
	}
	for _, d := range digits {
		if !slices.Contains([]rune("0123456789*#ABCDabcd"), d) {
			return problem.BadParam("dtmf", "dtmf must consist of 0-9, *, # and A-D")
		}
	}
	if s := l.call.script; s != nil {
		s.press(strings.ToUpper(digits))
		return nil
	}
	l.media.SendDigits(digits)
	return nil
}

// change applies a change that the client makes to its own leg or to its own screen or device. It
// notifies all members.
func (l *leg) change(cmd Command) error {
	if cmd.Target != "" && cmd.Target != l.member.ID && cmd.Target != "all" {
		target := l.call.findSource(l, cmd.Target)
		if target == nil {
			return problem.New(problem.Forbidden, "not_permitted",
				"you may change only your own microphone and camera")
		}
		target.apply(cmd, byClient)
		return nil
	}
	l.apply(cmd, byClient)
	return nil
}

// The values of the parameter own, which states who requested a change: the leg's client, or a
// moderator or operator.
const (
	byClient = true
	byOthers = false
)

// apply applies a change to the leg. own is byClient or byOthers.
func (l *leg) apply(cmd Command, own bool) {
	var names []string
	assign := func(name string, field *bool, value bool) {
		*field = value
		names = append(names, name)
	}

	m := &l.member
	switch cmd.Op {
	case Mute, Unmute:
		for _, kind := range cmd.Media {
			if kind == Audio {
				assign("audio_muted", &m.AudioMuted, l.mute(kind, cmd.Op == Mute, own))
			} else {
				assign("video_muted", &m.VideoMuted, l.mute(kind, cmd.Op == Mute, own))
			}
		}
	case Deaf, Undeaf:
		assign("deaf", &m.Deaf, cmd.Op == Deaf)
	case RaiseHand, LowerHand:
		l.raiseHand(cmd.Op == RaiseHand)
		names = append(names, "handraised")
	case SetMicrophone, SetSpeaker:
		names = append(names, l.setVolume(cmd))
	}

	if l.media != nil { // otherwise, renew applies the controls
		l.applyControls()
	}
	l.tellChange(names)
	l.call.keepControls()
}

// mute reports whether the leg is muted after a request to mute or unmute it. Clients may undo any
// mute of their own leg. Others may not undo the client's own mute, because SDKs turn the
// microphone or camera on again when they are notified of an unmute.
func (l *leg) mute(kind Kind, muted, own bool) bool {
	ownMute := &l.ownVideoMute
	if kind == Audio {
		ownMute = &l.ownAudioMute
	}
	if own {
		*ownMute = muted
	}
	return muted || *ownMute
}

// changeLimit returns the rate limit for notifying members that one of them has changed.
func changeLimit() *rate.Limiter { return rate.NewLimiter(10, 20) }

// tellChange notifies all members that the leg has changed. Changes beyond the limit are collected
// and sent later as one event. Otherwise, a client with many sockets could fill the queues of the
// other members' sockets. The server closes sockets with a full queue.
func (l *leg) tellChange(names []string) {
	waits := len(l.pending) > 0
	for _, name := range names {
		if !slices.Contains(l.pending, name) {
			l.pending = append(l.pending, name)
		}
	}
	if waits || len(l.pending) == 0 {
		return
	}
	if delay := l.changes.Reserve().Delay(); delay > 0 {
		time.AfterFunc(delay, func() { l.call.post(l.tellPending) })
		return
	}
	l.tellPending()
}

// tellPending notifies all members of the changes collected since the last notification.
func (l *leg) tellPending() {
	names, member := l.pending, l.member
	l.pending = nil
	if !l.ended {
		l.call.tellMembers(Event{Kind: MemberUpdated, Member: &member, Updated: names})
	}
}
