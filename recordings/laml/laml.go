// Package laml serves the recordings API of LaML (2010-04-01), as the
// compatibility clients speak it.
//
// Media is public: whoever knows the Sid may fetch it. Everything else needs
// credentials, which a func of the [Config] checks, so that this package knows
// neither API keys nor tokens. What is unknown, deleted or another's is one and
// the same 404. Every error is a LaML object.
package laml

import (
	"log/slog"
	"net/http"

	"github.com/selvage/selvage/recordings"
)

// Config says what an [API] stands on.
type Config struct {
	Recordings *recordings.Recordings // the rules; required

	// Credentials gives who is calling. None, wrong ones and ones without the scope
	// Voice are a problem.Unauthenticated. nil accepts nobody.
	Credentials func(r *http.Request) (Caller, error)

	PublicURL string       // in front of media_url; "" leaves it root-relative
	Log       *slog.Logger // nil means slog.Default
}

// A Caller is who is calling: a project, or with a SubscriberID a subscriber of
// it, who sees what is tied to it and changes nothing.
type Caller struct {
	ProjectID    string
	SubscriberID string
}
