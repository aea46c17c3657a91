package fabric

import (
	"context"
	"encoding/json"
	"time"

	"github.com/selvage/selvage/internal/page"
)

// An Export is all data about a subscriber, for the subscriber to read. It excludes credentials:
// passwords, secrets and push keys.
type Export struct {
	ExportedAt     time.Time               `json:"exported_at"`
	Subscriber     ExportedSubscriber      `json:"subscriber"`
	Addresses      []ExportedAddress       `json:"addresses"`
	Sessions       []ExportedLogin         `json:"sessions"` // logins, including ended logins
	Consents       []ExportedConsent       `json:"consents"`
	RefreshTokens  []ExportedFamily        `json:"refresh_tokens"` // families with a used token
	Devices        []ExportedDevice        `json:"devices"`
	SIPCredentials []ExportedSIPCredential `json:"sip_credentials"`
	Passkeys       []ExportedPasskey       `json:"passkeys"`
	Authenticator  bool                    `json:"authenticator_app"`
	RecoveryCodes  int                     `json:"recovery_codes_left"`
	Recordings     []ExportedRecording     `json:"recordings"`
	Calls          []ExportedCall          `json:"calls"`
	Messages       []ExportedMessage       `json:"messages"`
}

// The parts of an Export.
type (
	ExportedSubscriber struct {
		ID            string `json:"id"`
		ProjectID     string `json:"project_id"`
		Email         string `json:"email,omitempty"`
		EmailVerified bool   `json:"email_verified"`
		Reference     string `json:"reference,omitempty"`
		Person
		Claims      StandardClaims `json:"claims"`
		HasPassword bool           `json:"has_password"`
		Disabled    bool           `json:"disabled"`
		RecordCalls RecordCalls    `json:"record_calls"`
		Forwarding
		Online    bool      `json:"online"`
		CreatedAt time.Time `json:"created_at"`
		UpdatedAt time.Time `json:"updated_at"`
	}
	ExportedAddress struct {
		ID          string    `json:"id"`
		Address     string    `json:"address"`
		DisplayName string    `json:"display_name"`
		Channels    []string  `json:"channels"`
		CreatedAt   time.Time `json:"created_at"`
	}
	ExportedLogin struct {
		ID        string          `json:"id"`
		AMR       []string        `json:"amr"`
		UserAgent string          `json:"user_agent"`
		IPAddress string          `json:"ip_address"`
		CreatedAt time.Time       `json:"created_at"`
		ExpiresAt time.Time       `json:"expires_at"`
		EndedAt   *time.Time      `json:"ended_at"`
		Grants    []ExportedGrant `json:"grants"`
	}
	ExportedGrant struct {
		ClientID   string     `json:"client_id"`
		ClientName string     `json:"client_name"`
		Scope      []string   `json:"scope"`
		CreatedAt  time.Time  `json:"created_at"`
		ExpiresAt  time.Time  `json:"expires_at"`
		RevokedAt  *time.Time `json:"revoked_at"`
	}
	ExportedConsent struct {
		ClientID   string    `json:"client_id"`
		ClientName string    `json:"client_name"`
		Scope      []string  `json:"scope"`
		UpdatedAt  time.Time `json:"updated_at"`
	}
	ExportedFamily struct {
		ID          string     `json:"id"`
		ClientID    string     `json:"client_id,omitempty"`
		CreatedAt   *time.Time `json:"created_at"`
		RefreshedAt *time.Time `json:"refreshed_at"`
		Refreshes   int64      `json:"refreshes"`
		ExpiresAt   time.Time  `json:"expires_at"`
		Revoked     bool       `json:"revoked"`
	}
	ExportedDevice struct {
		ID        string    `json:"id"`
		Type      string    `json:"device_type"`
		Name      string    `json:"device_name"`
		CreatedAt time.Time `json:"created_at"`
	}
	ExportedSIPCredential struct {
		ID        string    `json:"id"`
		Username  string    `json:"username"`
		CreatedAt time.Time `json:"created_at"`
	}
	ExportedPasskey struct {
		ID        string     `json:"id"`
		Name      string     `json:"name"`
		CreatedAt time.Time  `json:"created_at"`
		UsedAt    *time.Time `json:"used_at"`
	}
	// An ExportedRecording describes a recording that is linked to the subscriber.
	ExportedRecording struct {
		Sid           string     `json:"sid"`
		CallSid       string     `json:"call_sid,omitempty"`
		ConferenceSid string     `json:"conference_sid,omitempty"`
		From          string     `json:"from,omitempty"`
		To            string     `json:"to,omitempty"`
		Direction     string     `json:"direction,omitempty"`
		Track         string     `json:"track"`
		Status        string     `json:"status"`
		Duration      float64    `json:"duration"` // seconds
		Codec         string     `json:"codec"`
		Bytes         int64      `json:"bytes"`
		SHA256        string     `json:"sha256"`
		StartTime     *time.Time `json:"start_time"`
		CreatedAt     time.Time  `json:"created_at"`
	}
	// An ExportedCall is a call that the subscriber made or received.
	ExportedCall struct {
		ID           string     `json:"id"`
		From         string     `json:"from"`
		FromName     string     `json:"from_name"`
		To           string     `json:"to"`
		ToName       string     `json:"to_name"`
		State        string     `json:"state"`
		Cause        string     `json:"cause,omitempty"`
		Video        bool       `json:"video"`
		RecordingSid string     `json:"recording_sid,omitempty"`
		Duration     int64      `json:"duration"` // seconds
		CreatedAt    time.Time  `json:"created_at"`
		AnsweredAt   *time.Time `json:"answered_at"`
		EndedAt      *time.Time `json:"ended_at"`
	}
	// An ExportedMessage is a message that the subscriber sent, or received outside of rooms.
	ExportedMessage struct {
		ID            string    `json:"id"`
		FromAddressID string    `json:"from_address_id"`
		FromName      string    `json:"from_name"`
		ToAddressID   string    `json:"to_address_id"`
		Text          string    `json:"text"`
		CreatedAt     time.Time `json:"created_at"`
	}
)

// Known returns a pointer to t, or nil for the zero time.
func Known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ExportSubscriber returns all data about a subscriber.
func (f *Fabric) ExportSubscriber(ctx context.Context, projectID, id string) (Export, error) {
	s, err := f.Subscribers.Find(ctx, projectID, id)
	if err != nil {
		return Export{}, err
	}
	presence, err := f.Presence.Find(ctx, s.ProjectID, s.ID)
	if err != nil {
		return Export{}, err
	}

	e := Export{
		ExportedAt: f.core.now().UTC(),
		Subscriber: ExportedSubscriber{
			ID:            s.ID,
			ProjectID:     s.ProjectID,
			Email:         s.Email,
			EmailVerified: s.Verified,
			Reference:     s.Reference,
			Person:        s.Person,
			Claims:        s.Claims,
			HasPassword:   s.PasswordHash != "",
			Disabled:      s.Disabled,
			RecordCalls:   s.RecordCalls,
			Forwarding:    s.Forwarding,
			Online:        presence.Online(),
			CreatedAt:     s.Created,
			UpdatedAt:     s.Updated,
		},
		// Empty lists, because JSON would encode nil as null.
		Passkeys:   []ExportedPasskey{},
		Recordings: []ExportedRecording{},
		Calls:      []ExportedCall{},
		Messages:   []ExportedMessage{},
	}

	parts := []func(context.Context, Subscriber, *Export) error{
		f.exportAddresses,
		f.exportLogins,
		f.exportConsents,
		f.exportFamilies,
		f.exportDevices,
		f.exportPhones,
	}
	for _, add := range parts {
		if err := add(ctx, s, &e); err != nil {
			return Export{}, err
		}
	}
	if f.core.c.Export != nil {
		if err := f.core.c.Export(ctx, &e); err != nil {
			return Export{}, err
		}
	}
	return e, nil
}

// HideSids truncates all Sids of recordings, also those in calls, for readers who may not fetch the
// recordings. If media are public, anyone who knows a complete Sid can fetch the recording.
func (e *Export) HideSids() {
	for i, r := range e.Recordings {
		e.Recordings[i].Sid = HideSid(r.Sid)
	}
	for i, c := range e.Calls {
		if c.RecordingSid != "" {
			e.Calls[i].RecordingSid = HideSid(c.RecordingSid)
		}
	}
}

// HideSid returns the beginning of a recording's Sid, for logs and for readers who may not fetch
// the recording. If media are public, a complete Sid is enough to fetch it.
func HideSid(sid string) string { return sid[:min(len(sid), 8)] + "..." }

// JSON formats the export as one document.
func (e Export) JSON() ([]byte, error) { return json.MarshalIndent(e, "", "  ") }

// exported converts all items of a list to the form that exports use. It never returns nil, which
// JSON would encode as null.
func exported[T, E any](
	ctx context.Context, s Subscriber,
	list func(context.Context, string, string, page.Query) (page.Page[T], error), show func(T) E,
) ([]E, error) {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[T], error) {
		return list(ctx, s.ProjectID, s.ID, q)
	})
	if err != nil {
		return nil, err
	}
	shown := make([]E, len(found))
	for i, item := range found {
		shown[i] = show(item)
	}
	return shown, nil
}

func (f *Fabric) exportAddresses(ctx context.Context, s Subscriber, e *Export) error {
	// Unlike a list, this includes the addresses of a disabled subscriber.
	_, addresses, err := f.Subscribers.store.SubscriberWithAddresses(ctx, s.ProjectID, s.ID)
	if err != nil {
		return err
	}
	e.Addresses = make([]ExportedAddress, len(addresses))
	for i, a := range addresses {
		e.Addresses[i] = ExportedAddress{
			ID:          a.ID,
			Address:     a.Path(),
			DisplayName: a.DisplayName,
			Channels:    a.Channels,
			CreatedAt:   a.Created,
		}
	}
	return nil
}

func (f *Fabric) exportLogins(ctx context.Context, s Subscriber, e *Export) (err error) {
	e.Sessions, err = exported(ctx, s, f.Logins.store.ListLogins, func(l Login) ExportedLogin {
		grants := make([]ExportedGrant, len(l.Grants))
		for i, g := range l.Grants {
			grants[i] = ExportedGrant{
				ClientID:   g.ClientID,
				ClientName: g.ClientName,
				Scope:      g.Scope,
				CreatedAt:  g.Created,
				ExpiresAt:  g.Expires,
				RevokedAt:  Known(g.Revoked),
			}
		}
		return ExportedLogin{
			ID:        l.ID,
			AMR:       l.AMR,
			UserAgent: l.UserAgent,
			IPAddress: l.Address,
			CreatedAt: l.Began,
			ExpiresAt: l.Expires,
			EndedAt:   Known(l.Ended),
			Grants:    grants,
		}
	})
	return err
}

func (f *Fabric) exportConsents(ctx context.Context, s Subscriber, e *Export) (err error) {
	e.Consents, err = exported(ctx, s, f.Logins.store.ListConsents, func(o Consent) ExportedConsent {
		return ExportedConsent{
			ClientID:   o.ClientID,
			ClientName: o.ClientName,
			Scope:      o.Scope,
			UpdatedAt:  o.Updated,
		}
	})
	return err
}

func (f *Fabric) exportFamilies(ctx context.Context, s Subscriber, e *Export) (err error) {
	e.RefreshTokens, err = exported(ctx, s, f.Tokens.store.ListFamilies, func(o Family) ExportedFamily {
		return ExportedFamily{
			ID:          o.ID,
			ClientID:    o.ClientID,
			CreatedAt:   Known(o.Created),
			RefreshedAt: Known(o.Used),
			Refreshes:   o.Refreshes,
			ExpiresAt:   o.Expires,
			Revoked:     o.Revoked,
		}
	})
	return err
}

func (f *Fabric) exportDevices(ctx context.Context, s Subscriber, e *Export) (err error) {
	e.Devices, err = exported(ctx, s, f.Devices.store.ListDevices, func(d Device) ExportedDevice {
		return ExportedDevice{
			ID:        d.ID,
			Type:      d.Type,
			Name:      d.Name,
			CreatedAt: d.Created,
		}
	})
	return err
}

func (f *Fabric) exportPhones(ctx context.Context, s Subscriber, e *Export) (err error) {
	list := func(ctx context.Context, _, id string, q page.Query) (page.Page[SIPCredential], error) {
		return f.SIP.store.ListSIPCredentials(ctx, id, q)
	}
	e.SIPCredentials, err = exported(ctx, s, list, func(c SIPCredential) ExportedSIPCredential {
		return ExportedSIPCredential{ID: c.ID, Username: c.Username(), CreatedAt: c.Created}
	})
	return err
}
