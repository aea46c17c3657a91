package calls

import (
	"context"
	"time"

	"github.com/selvage/selvage/fabric"
)

// The errors of a record verb.
const (
	errorNoRecorder  = "recordings_unavailable"
	errorNotRecorded = "recording_failed"
)

// record plays a tone and then records the caller for the given time. It does not affect a
// recording of the whole call.
func (s *script) record(length time.Duration) (r VerbResult) {
	r.Verb = RecordVerb
	k := s.call
	if k.calls.recorder == nil {
		r.Error = errorNoRecorder
		return r
	}
	var c RecordedCall
	if !s.do(func() { c = s.beginRecord() }) {
		return r
	}

	var rec Recording
	err := k.recordings.change(func(ctx context.Context) (err error) {
		rec, err = k.calls.recorder.Start(ctx, c)
		return err
	})
	if rec == nil {
		r.Error = errorNotRecorded // change has logged the error
		return r
	}
	if err != nil && k.recordings.follow() != nil { // rec has begun, but its status could not be read
		rec.Stop() // the call has ended
		return r
	}

	recorded, cancel := context.WithTimeout(s.ctx, length)
	<-recorded.Done()
	cancel()
	if s.ctx.Err() != nil {
		return r // the recording has ended with the call
	}
	err = k.recordings.change(func(ctx context.Context) error {
		return k.calls.recorder.End(ctx, k.recordings.about, rec.Sid())
	})
	if err != nil {
		r.Error = errorNotRecorded
	}
	r.RecordingSid = fabric.HideSid(rec.Sid())
	return r
}

// beginRecord answers the call, plays the tone, and describes the recording.
func (s *script) beginRecord() RecordedCall {
	s.answer()
	s.call.caller().media.Beep()
	c := s.call.record.recorded(time.Now())
	c.Track, c.Mono = "inbound", true
	return c
}
