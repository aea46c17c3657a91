package rtpengine

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/selvage/selvage/calls"
)

// errApart is the error of a call whose sides are at different rtpengines. This may happen if the sides
// attach again after their node was lost, while an rtpengine answers only some of the requests.
var errApart = errors.New("two sides of a call are at different rtpengines")

// Link implements calls.Media.
func (l *leg) Link(kind calls.Kind, to calls.Media) {
	target, _ := to.(*leg)
	if target != nil && target.daemon != l.daemon {
		l.engine.log.Error("linking the sides of a call", "error", errApart,
			"one", l.daemon.address, "other", target.daemon.address)
		target = nil
		l.engine.background(func() { l.fail(errApart) })
	}
	if displaced := l.relink(kind, target); displaced != nil {
		displaced.sync()
	}
	l.sync()
}

// relink changes a link. It returns the leg whose media the target received until now, or nil.
func (l *leg) relink(kind calls.Kind, target *leg) (displaced *leg) {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	if l.closed || target != nil && target.closed || l.to[kind] == target {
		return nil
	}

	if before := l.to[kind]; before != nil {
		delete(before.from, kind)
		delete(l.to, kind)
	}
	if target == nil {
		return nil
	}

	if displaced = target.from[kind]; displaced != nil {
		delete(displaced.to, kind)
	}
	l.to[kind] = target
	target.from[kind] = l
	return displaced
}

// Mute implements calls.Media.
func (l *leg) Mute(kind calls.Kind, muted bool) {
	l.engine.mu.Lock()
	l.muted[kind] = muted
	l.engine.mu.Unlock()
	l.sync()
}

// isMuted reports whether the client's audio is muted.
func (l *leg) isMuted() bool {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	return l.muted[calls.Audio]
}

// Deafen implements calls.Media.
func (l *leg) Deafen(deaf bool) {
	l.engine.mu.Lock()
	l.deaf = deaf
	from := l.from[calls.Audio]
	l.engine.mu.Unlock()
	if from != nil {
		from.sync()
	}
}

// destinations returns where the client's media goes. If the linked leg must not receive media of a
// kind, the media goes to the drain.
func (l *leg) destinations() map[calls.Kind]netip.AddrPort {
	drain := addressOf(l.daemon.drain)
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	sending := map[calls.Kind]netip.AddrPort{calls.Audio: drain, calls.Video: drain}
	for kind, to := range l.to {
		inner, ok := to.inner[kind]
		if ok && to.proved && !l.muted[kind] && !(kind == calls.Audio && to.deaf) {
			sending[kind] = inner
		}
	}
	return sending
}

// sync notifies rtpengine if the destination of the client's media has changed.
func (l *leg) sync() {
	l.io.Lock()
	defer l.io.Unlock()
	sending := l.destinations()
	l.engine.mu.Lock()
	same := l.closed || maps.Equal(l.sending, sending)
	l.engine.mu.Unlock()
	if same || !l.accepted {
		return
	}
	if _, err := l.exchange(); err != nil {
		l.engine.log.Error("linking the sides of a call", "error", err)
		l.engine.background(func() { l.fail(err) })
	}
}

// syncSources calls sync for the legs whose media the client receives.
func (l *leg) syncSources() {
	l.engine.mu.Lock()
	sources := slices.Collect(maps.Values(l.from))
	l.engine.mu.Unlock()
	for _, source := range sources {
		source.sync()
	}
}

// target returns the leg that hears this leg, or nil.
func (l *leg) target() *leg {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	return l.to[calls.Audio]
}

// SendDigits implements calls.Media. Digits reach only phones, because browsers have no use for
// them.
func (l *leg) SendDigits(digits string) {
	to := l.target()
	if to == nil || !to.isPhone() {
		return
	}

	to.io.Lock()
	session := to.session
	to.io.Unlock()
	for _, digit := range strings.ToUpper(digits) {
		_, err := l.daemon.request("play DTMF", dict{
			"call-id":  session,
			"from-tag": switchTag,
			"code":     string(digit),
			"duration": 100,
			"pause":    100,
		})
		if err != nil {
			l.engine.log.Warn("sending digits by rtpengine", "error", err)
			return
		}
	}
}

// Beep implements calls.Media.
func (l *leg) Beep() {
	l.io.Lock()
	defer l.io.Unlock()
	_, err := l.daemon.request("play media", dict{"call-id": l.session, "from-tag": clientTag, "blob": tone()})
	if err != nil {
		l.engine.log.Warn("playing a tone by rtpengine", "error", err)
	}
}
