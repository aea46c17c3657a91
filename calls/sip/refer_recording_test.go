package sip_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/record"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// TestTransferRecorded shows that the recording of a call ends when a party transfers the call. If
// the settings of the new parties require a recording, a new recording begins.
func TestTransferRecorded(t *testing.T) {
	var stored *recordings.Recordings
	w := newWorld(t, recordsInto(t, &stored))
	w.recordsCalls("bob")
	carol, dave := w.registered("carol"), w.registered("dave")
	w.recordsCalls("dave")

	c := converse(t, w)
	eventually(t, "the call to be recorded", func() bool { return w.lastCall().Recorded })
	c.bob.transfers(c.bobRequests("REFER"), "carol")
	invite := carol.expect("INVITE")
	carol.takes(invite)
	eventually(t, "the recording to end with bob", func() bool { return !w.lastCall().Recorded })
	hear(t, c.alice, c.alice.mediaOf(c.answered), carol, "hello carol")

	carol.transfers(carol.inAnsweredDialog("REFER", invite), "dave")
	dave.takes(dave.expect("INVITE"))
	eventually(t, "the call with dave to be recorded", func() bool { return w.lastCall().Recorded })
	c.alice.hangsUp(c.answered)

	for user, want := range map[string]int{"alice": 2, "bob": 1, "carol": 0, "dave": 1} {
		owner := recordings.Owner{ProjectID: w.project, SubscriberID: w.subscribers[user]}
		owned := must[page.Page[recordings.Recording]](t)(
			stored.List(t.Context(), recordings.Filter{Owner: owner}, page.Query{Size: 9})).Items
		if len(owned) != want {
			t.Errorf("%s has %d recordings, want %d", user, len(owned), want)
		}
	}
}

// recordsInto returns a function that changes a configuration of calls so that the calls can be
// recorded. The function also sets *stored to the recordings.
func recordsInto(t *testing.T, stored **recordings.Recordings) func(*calls.Config) {
	return func(c *calls.Config) {
		rows := c.Store.(*store.Store)
		*stored = recordings.New(recordings.Config{
			Store:        rows,
			SubscriberOf: rows.SubscriberOf,
			Media:        storetest.Media(t, filepath.Join(t.TempDir(), "media")),
		})
		spools := must[*record.Spools](t)(record.Open(record.Config{Dir: t.TempDir(), Recordings: *stored}))
		t.Cleanup(func() { _ = spools.Close(context.Background()) })
		c.Recorder = spools
		c.IsRecorded = func(ctx context.Context, r calls.Record) (bool, error) {
			return c.Fabric.RecordsCall(ctx, r.ProjectID, r.Subscribers()...)
		}
	}
}

// recordsCalls switches recording on for a subscriber.
func (w *world) recordsCalls(subscriber string) {
	w.t.Helper()
	on := fabric.RecordOn
	must[fabric.Subscriber](w.t)(w.fabric.Subscribers.Update(w.t.Context(), w.project, w.subscribers[subscriber],
		fabric.SubscriberInput{RecordCalls: &on}))
}
