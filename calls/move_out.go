package calls

import (
	"context"
	"slices"
	"time"
)

// leaveRoom moves the call out of the room that it was moved into. It runs in the room's mailbox.
// After it returns, the call has its own mailbox again, so the calling function must no longer use
// the call. by is the subscriber who requested the move, or "".
func (k *call) leaveRoom(ctx context.Context, by string) error {
	r := k.inRoom
	if r == nil || k.state != InCall || len(k.people()) != 2 {
		return errNotMovedIn
	}

	var gone []Member
	for _, l := range slices.Concat(sources{k}.present(), k.people()) {
		gone = append(gone, l.member)
	}

	left := RoomChange{Session: r.session, Left: time.Now().UTC(), Joined: k.record.Joined, By: by}
	r.forget(k)
	r.hide(k)
	r.release(k.legs)
	for _, l := range k.legs {
		if !l.ended && l.media != nil {
			r.mixer.Show(nil, l.media)
			l.sees = ""
			l.member.InputVolume = 0
			l.member.OutputVolume = 0
		}
	}

	k.inRoom = nil
	k.session = newID()
	k.roomID = k.record.To.AddressID
	if k.roomID == "" {
		k.roomID = newID()
	}
	k.record.RoomSession = ""
	k.record.Joined = time.Time{}
	k.endTimer.Stop()
	k.limitLength()
	k.link()
	writer{k}.saveMove(ctx, left)
	for _, l := range k.people() {
		l.join()
	}

	r.miss(gone)
	k.box.Store(&mailbox{})
	return nil
}

// hide stops showing the video of a call that has left the room. The members who saw it see no
// video until choose selects another member, which may take up to minSwitch.
func (r *room) hide(k *call) {
	var viewers []*leg
	for _, viewer := range r.legs() {
		if slices.ContainsFunc(k.legs, func(l *leg) bool { return l.member.ID == viewer.sees }) {
			viewers = append(viewers, viewer)
		}
	}

	r.showVideo(nil, viewers)
	for _, viewer := range viewers {
		viewer.sees = ""
		viewer.tellLayout()
	}
}

// miss notifies the members that others have left with their call. If no member remains, it ends
// the session.
func (r *room) miss(gone []Member) {
	if len(r.members) == 0 {
		r.end(NormalClearing)
		return
	}
	for i := range gone {
		r.calls.tellAll(r.legs(), Event{Kind: MemberLeft, Member: &gone[i], Cause: NormalClearing})
	}
	if r.settings.Tones {
		r.mixer.ChimeDown()
	}
	r.choose()
}

// forget removes a call from the members, and from the stage.
func (r *room) forget(k *call) {
	r.members = slices.DeleteFunc(r.members, func(m *call) bool { return m == k })
	s := &r.stage
	for _, l := range []**leg{&s.speaker, &s.shown, &s.before} {
		if *l != nil && (*l).call == k {
			*l = nil
		}
	}
}
