package calls

import (
	"slices"
	"time"
)

// minShown is the minimum time between two changes of the speaker.
const minShown = 2 * time.Second

// minSwitch is the minimum time between two changes of what members see, regardless of their cause.
// Each change sends an event to every member. Without a minimum, a member could cause many events
// by repeatedly muting its camera.
const minSwitch = 500 * time.Millisecond

// A stage determines whose video the members of a room see. The member on the stage sees the member
// that was shown before.
type stage struct {
	speaker *leg        // the person who speaks, or spoke last
	shown   *leg        // the leg whose video the others see
	before  *leg        // the leg that was shown before
	since   time.Time   // when the speaker last changed
	waiting *time.Timer // runs until the speaker may change

	switched time.Time   // when members last saw a change
	next     *time.Timer // runs until the next change is allowed; nil if no change waits
}

// stop ends the timers.
func (s *stage) stop() {
	for _, t := range []*time.Timer{s.waiting, s.next} {
		if t != nil {
			t.Stop()
		}
	}
}

// choose selects the member that all others see, and shows that member to them. It selects the
// first that exists of these:
//
//   - the screen that was shared last,
//   - the member whose hand was raised first, if the room's settings say so,
//   - the member who speaks, or spoke last,
//   - the member who joined first.
//
// Members without video are never shown. If the last change was less than minSwitch ago, choose
// waits.
func (r *room) choose() {
	s := &r.stage
	if r.ended || s.next != nil {
		return
	}
	if wait := minSwitch - time.Since(s.switched); wait > 0 {
		s.next = time.AfterFunc(wait, func() {
			r.post(func() {
				s.next = nil
				r.choose()
			})
		})
		return
	}

	r.chooseSpeaker()
	next := r.preferred()
	if next != s.shown {
		if s.shown != nil && r.canBeSeen(s.shown) {
			s.before = s.shown
		}
		s.shown = next
	}
	if s.before == s.shown || !r.canBeSeen(s.before) {
		s.before = r.other(s.shown)
	}

	r.showAll()
}

// showAll shows each person the leg that sourceFor selects, and notifies the people who now see a
// different leg.
func (r *room) showAll() {
	changed := make(map[*leg][]*leg) // viewers by what they see now
	for _, viewer := range r.legs() {
		if viewer.member.Type != Person || viewer.media == nil {
			continue
		}
		source := r.sourceFor(viewer)
		seen := ""
		if source != nil {
			seen = source.member.ID
		}
		if viewer.sees != seen {
			viewer.sees = seen
			changed[source] = append(changed[source], viewer)
		}
	}

	for source, viewers := range changed {
		r.stage.switched = time.Now()
		r.showVideo(source, viewers)
		for _, viewer := range viewers {
			viewer.tellLayout()
		}
	}
}

// showVideo forwards the video of source, which may be nil, to the clients of viewers.
func (r *room) showVideo(source *leg, viewers []*leg) {
	var to []Media
	for _, viewer := range viewers {
		to = append(to, viewer.media)
	}
	if source == nil {
		r.mixer.Show(nil, to...)
	} else {
		r.mixer.Show(source.media, to...)
	}
}

// sourceFor returns the leg that a viewer should see, or nil.
func (r *room) sourceFor(viewer *leg) *leg {
	source := r.stage.shown
	if source != nil && (source == viewer || source.member.Parent == viewer.member.ID) {
		source = r.stage.before
	}
	if source != nil && source.owner() == viewer || viewer.held {
		return nil
	}
	return source
}

// preferred returns the leg that the members should see, or nil.
func (r *room) preferred() *leg {
	for _, l := range slices.Backward(r.legs()) {
		if l.member.Type == Screen && r.canBeSeen(l) {
			return l
		}
	}
	if hand := r.firstHand(); hand != nil {
		return r.sourceOf(hand)
	}
	if source := r.sourceOf(r.stage.speaker); source != nil {
		return source
	}
	return r.other(nil)
}

// firstHand returns the person with video who raised a hand first, or nil. It returns nil if the
// room's settings do not prefer raised hands.
func (r *room) firstHand() (first *leg) {
	if !r.settings.HandsFirst {
		return nil
	}
	for _, l := range r.legs() {
		if !l.member.HandRaised || r.sourceOf(l) == nil {
			continue
		}
		if first == nil || l.handRaised.Before(first.handRaised) {
			first = l
		}
	}
	return first
}

// other returns the leg that sends the video of the first member with video. If skipped is not nil,
// other ignores the member to whom this leg belongs.
func (r *room) other(skipped *leg) *leg {
	for _, l := range r.legs() {
		if source := r.sourceOf(l); source != nil && (skipped == nil || source.owner() != skipped.owner()) {
			return source
		}
	}
	return nil
}

// sourceOf returns the leg that sends a person's video: the newest device with a camera, or the
// person's own leg. It returns nil if the person has no video.
func (r *room) sourceOf(l *leg) (source *leg) {
	if l == nil || l.member.Type != Person {
		return nil
	}
	for _, s := range l.call.legs {
		if s.member.Type != Screen && s.owner() == l && r.canBeSeen(s) {
			source = s
		}
	}
	return source
}

// canBeSeen reports whether a leg belongs to a member, sends video, and is neither muted nor on
// hold.
func (r *room) canBeSeen(l *leg) bool {
	if l == nil || !l.active || l.ended || l.call.state != InCall {
		return false
	}
	return l.media != nil && l.video && !l.member.VideoMuted && !l.owner().held
}

// chooseSpeaker makes the first member who is talking the speaker. It keeps the current speaker if
// that member is still talking, or became the speaker less than minShown ago.
func (r *room) chooseSpeaker() {
	s := &r.stage
	if s.speaker != nil && s.speaker.ended {
		s.speaker = nil
	}
	if s.speaker != nil && s.speaker.member.Talking {
		return
	}

	var next *leg
	for _, l := range r.legs() {
		if l.member.Talking && l.member.Type == Person && !l.member.AudioMuted {
			next = l
			break
		}
	}

	if next == nil || next == s.speaker {
		return
	}

	if wait := minShown - time.Since(s.since); wait > 0 && s.speaker != nil {
		s.stop()
		s.waiting = time.AfterFunc(wait, func() { r.post(r.choose) })
		return
	}
	s.speaker = next
	s.since = time.Now()
}

// tellLayout sends the client the id of the member that it sees.
func (l *leg) tellLayout() { l.tell(Event{Kind: LayoutChanged, Seen: l.sees}) }

// noteVideo records whether the leg's client sends video.
func (l *leg) noteVideo() {
	if r := l.call.inRoom; r != nil && l.media != nil {
		l.video = r.mixer.SendsVideo(l.media)
		r.choose()
	}
}
