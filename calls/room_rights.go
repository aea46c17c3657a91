package calls

import (
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// guestRights and moderatorRights list what members of a room may do, in the SDK's terms.
// Subscribers are moderators. Holders of guest, invite and embed tokens are guests. There are no
// rights for positions, layouts and microphone flags, because the server shows one member at a time
// and cannot change a member's microphone.
var (
	guestRights = []string{
		"self.mute.audio", "self.mute.video", "self.deaf", "self.raisehand", "self.microphone.volume",
		"self.speaker.volume", "device", "screenshare",
	}
	moderatorRights = append([]string{
		"member.mute.audio", "member.mute.video", "member.deaf", "member.raisehand", "member.microphone.volume",
		"member.speaker.volume", "member.remove", "lock", "end",
	}, guestRights...)
)

// capabilities returns what the leg's client may do.
func (l *leg) capabilities() []string {
	switch {
	case l.call.inRoom == nil:
		return capabilities
	case l.isModerator():
		return moderatorRights
	}
	return guestRights
}

// isModerator reports whether the client may act on other members of its room.
func (l *leg) isModerator() bool { return l.client.Token.Kind == fabric.SAT }

var errNotModerator = problem.New(problem.Forbidden, "not_permitted", "only moderators may do this to others")

// actInRoom executes a command that works differently in rooms, or only there. handled is false for
// other commands.
func (l *leg) actInRoom(cmd Command) (handled bool, err error) {
	if !l.mayInRoom(cmd) {
		return true, errNotModerator
	}
	affectsAll := cmd.Op == Lock || cmd.Op == Unlock || cmd.Op == List || cmd.Target == "all"
	if affectsAll {
		if err := l.admitWide(); err != nil {
			return true, err
		}
	}

	r := l.call.inRoom
	switch cmd.Op {
	case Lock, Unlock:
		r.setLocked(cmd.Op == Lock)
	case End:
		r.end(NormalClearing)
	case Remove:
		r.remove(cmd.Target)
	case Mute, Unmute, Deaf, Undeaf, RaiseHand, LowerHand, SetMicrophone, SetSpeaker:
		l.changeInRoom(cmd)
	default:
		return false, nil
	}
	return true, nil
}

// mayInRoom reports whether the client may send a command to its room. Guests may change only
// themselves.
func (l *leg) mayInRoom(cmd Command) bool {
	switch cmd.Op {
	case Lock, Unlock, End, Remove:
		return l.isModerator()
	case Mute, Unmute, Deaf, Undeaf, RaiseHand, LowerHand, SetMicrophone, SetSpeaker:
		return l.isModerator() || l.isOwn(cmd.Target)
	}
	return true
}

// setLocked locks the room, so that nobody else can join, or unlocks it.
func (r *room) setLocked(locked bool) {
	if r.locked == locked {
		return
	}
	r.locked = locked
	r.session.Locked = locked
	r.tellUpdated()
	r.save()
}

// remove ends the call of a member. If memberID belongs to a screen or device, it ends only the
// screen or device.
func (r *room) remove(memberID string) {
	l := r.leg(memberID)
	if l == nil {
		return
	}
	if l.member.Type == Person {
		l.depart(Removed)
		return
	}
	l.leave(Removed)
	r.choose()
}

// isOwn reports whether target is the id of the client's own member, screen or device. "" stands
// for the member.
func (l *leg) isOwn(target string) bool {
	return target == "" || target == l.member.ID || l.call.findSource(l, target) != nil
}

// changeInRoom applies a change to the member that cmd.Target names. "" stands for the client
// itself, and "all" for all members.
func (l *leg) changeInRoom(cmd Command) {
	r := l.call.inRoom
	switch cmd.Target {
	case "all":
		for _, other := range r.legs() {
			if other.member.Type == Person {
				other.apply(cmd, other == l)
			}
		}
	case "":
		l.apply(cmd, byClient)
	default:
		if other := r.leg(cmd.Target); other != nil {
			other.apply(cmd, l.isOwn(cmd.Target))
		}
	}
	r.choose()
}

// muteByManager mutes or unmutes the microphone of a member, because an operator requested it. In a
// call that was moved into the room, it mutes or unmutes both sides. After a node was lost, this includes
// clients that have not attached again yet.
func (k *call) muteByManager(muted bool) {
	if k.inRoom == nil || k.state != InCall {
		return
	}
	op := Unmute
	if muted {
		op = Mute
	}
	for _, l := range k.legs {
		if l.ended || l.member.Type != Person {
			continue
		}
		l.apply(Command{Op: op, Media: []Kind{Audio}}, byOthers)
	}
	k.inRoom.choose()
}

// maxVolume is the largest volume that a client can set. The smallest is -maxVolume.
const maxVolume = 50

// setVolume sets how loud the leg is, or how loud it hears the others. It returns the name of the
// changed field.
func (l *leg) setVolume(cmd Command) string {
	volume := min(max(cmd.Volume, -maxVolume), maxVolume)
	changed := "output_volume"
	if cmd.Op == SetMicrophone {
		l.member.InputVolume = volume
		changed = "input_volume"
	} else {
		l.member.OutputVolume = volume
	}
	l.call.inRoom.mixer.SetVolumes(l.media, l.member.InputVolume, l.member.OutputVolume)
	return changed
}

// raiseHand raises or lowers a hand. It records when the hand was raised.
func (l *leg) raiseHand(raised bool) {
	if raised && !l.member.HandRaised {
		l.handRaised = time.Now()
	}
	l.member.HandRaised = raised
}
