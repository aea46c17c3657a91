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
// the settings of the new parties require a recording, another recording begins.
func TestTransferRecorded(t *testing.T) {
	var all *recordings.Recordings
	w := newWorld(t, recordsInto(t, &all))
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

	carol.callID = invite.header("Call-ID")[0]
	carol.transfers(request{method: "REFER", uri: "sip:selvage@" + w.udp.String(), to: invite.header("From")[0],
		from: "phone-carol"}, "dave")
	dave.takes(dave.expect("INVITE"))
	eventually(t, "the call with dave to be recorded", func() bool { return w.lastCall().Recorded })
	c.alice.hangsUp(c.answered)

	owned := func(user string) int {
		of := recordings.Filter{Owner: recordings.Owner{ProjectID: w.project, SubscriberID: w.subscribers[user]}}
		return len(must[page.Page[recordings.Recording]](t)(all.List(t.Context(), of, page.Query{Size: 9})).Items)
	}
	for user, want := range map[string]int{"alice": 2, "bob": 1, "carol": 0, "dave": 1} {
		if n := owned(user); n != want {
			t.Errorf("%s has %d recordings, want %d", user, n, want)
		}
	}
}

// recordsInto returns a function that changes a configuration of calls so that they can be
// recorded. The function also sets *all to the recordings.
func recordsInto(t *testing.T, all **recordings.Recordings) func(*calls.Config) {
	return func(c *calls.Config) {
		rows := c.Store.(*store.Store)
		*all = recordings.New(recordings.Config{Store: rows, SubscriberOf: rows.SubscriberOf,
			Media: storetest.Media(t, filepath.Join(t.TempDir(), "media"))})
		spools := must[*record.Spools](t)(record.Open(record.Config{Dir: t.TempDir(), Recordings: *all}))
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
