package clients

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// TestWebhookValidator shows that the vendor's own validator accepts a webhook's signature.
func TestWebhookValidator(t *testing.T) {
	harness.NotStorage(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal}})
	p := s.NewProject(t)
	r := harness.NewReceiver(t)
	p.NewWebhook(t, r.URL)
	p.NewSubscriber(t)

	harness.Eventually(t, time.Minute, "the delivery", func() error {
		if len(r.Told()) == 0 {
			return errors.New("nothing was delivered")
		}
		return nil
	})

	key := p.CLI(t, "", "webhook", "key", "show", "--project", p.ID)["key"].(string)
	delivery := r.Told()[0]
	runNode(t, "webhook.mjs", map[string]string{
		"key":       key,
		"url":       r.URL,
		"body":      string(delivery.Body),
		"signature": delivery.Header.Get("X-Signalwire-Signature"),
	}, noVisit)
}
