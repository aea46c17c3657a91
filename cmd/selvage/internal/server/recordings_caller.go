package server

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// recordingsCaller returns whose recordings the caller of a recordings API may access. The
// caller authenticates with
//
//   - an API key, for its project,
//   - a bearer token of a service, for its project, or of a subscriber, for their own,
//   - no Authorization header but a login to the dashboard, for the project in the path.
//
// API keys and tokens need the scope Voice.
func (a *App) recordingsCaller(r *http.Request) (recordings.Owner, error) {
	if projectID, key, ok := web.Basic(r); ok {
		return a.callerByKey(r, projectID, key)
	}
	if raw, ok := web.Bearer(r); ok {
		return a.callerByToken(r, raw)
	}
	if a.pages != nil && r.Header.Get("Authorization") == "" {
		projectID := r.PathValue("AccountSid")
		return recordings.Owner{ProjectID: projectID}, a.pages.Caller(r, projectID)
	}
	return recordings.Owner{}, problem.NoCredentials()
}

// callerByKey authenticates an API key, and counts the request against its limits.
func (a *App) callerByKey(r *http.Request, projectID, key string) (recordings.Owner, error) {
	k, err := a.Fabric.APIKeys.Authenticate(r.Context(), projectID, key)
	if err != nil {
		return recordings.Owner{}, err
	}
	audit.As(r.Context(), audit.APIKey, k.ID)
	if !k.Has(fabric.Voice) {
		return recordings.Owner{}, problem.NoCredentials()
	}
	return recordings.Owner{ProjectID: k.ProjectID}, a.admit(r, k.ID)
}

// callerByToken authenticates a bearer token, and counts the request against the limits of
// its caller.
func (a *App) callerByToken(r *http.Request, raw string) (recordings.Owner, error) {
	t, err := a.IDP.Tokens.Open(r.Context(), raw)
	if err != nil {
		return recordings.Owner{}, err
	}
	if !t.Has(fabric.Voice) || t.Kind != fabric.Service && t.SubscriberID == "" {
		return recordings.Owner{}, problem.NoCredentials()
	}

	if t.SubscriberID != "" {
		audit.As(r.Context(), audit.Subscriber, t.SubscriberID)
	} else {
		audit.As(r.Context(), audit.Client, t.ClientID)
	}
	return recordings.Owner{ProjectID: t.ProjectID, SubscriberID: t.SubscriberID}, a.admit(r, t.Caller())
}
