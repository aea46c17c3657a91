package dashboard_test

import (
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/operator"
)

// TestDeliveryResponse shows that the page of a delivery has the duration of the last attempt and
// the escaped response. It names a refused address only to operators of the installation.
func TestDeliveryResponse(t *testing.T) {
	w := newWorld(t)
	_, owner := w.operator("owner@example.com", ofAll)
	_, ofOne := w.operator("one@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Owner})
	address := "https://hooks.example/crm"
	hook, err := w.fabric.Webhooks.Create(t.Context(), w.one.ID, fabric.WebhookInput{URL: &address})
	must(t, err)
	d, err := w.fabric.Webhooks.Test(t.Context(), w.one.ID, hook.ID)
	must(t, err)
	at := "/dashboard/projects/" + w.one.ID + "/webhooks/" + hook.ID + "/deliveries/" + d.ID
	owner.get(at).wantNoText(t, `id="response"`, `id="refused"`, "<dt>Duration</dt>") // there was no attempt

	must(t, w.rows.Webhooks.Queue().Settle(t.Context(), deliver.Result{
		ReceiverID: hook.ID,
		JobID:      d.ID,
		Queued:     d.Queued,
		State:      deliver.Pending,
		Attempts:   1,
		Status:     404,
		Response:   "<script>alert(1)</script>",
		Refused:    "10.9.8.7:80",
		Took:       214 * time.Millisecond,
		Due:        time.Now().Add(time.Hour),
	}))

	for _, reader := range []browser{owner, ofOne} {
		reader.get(at).wantText(t, `<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>`,
			"<dt>Duration</dt><dd>214ms</dd>")
	}
	owner.get(at).wantText(t, "10.9.8.7:80")
	ofOne.get(at).wantNoText(t, "10.9.8.7:80")
}
