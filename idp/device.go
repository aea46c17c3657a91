package idp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A Device is a device that a person signs in with a browser on another device (RFC 8628). The
// session store holds it under the digest of its device code. A second entry, under the digest of
// its user code, refers to the first.
type Device struct {
	ClientID string        `json:"client_id"`
	Scope    []string      `json:"scope"`
	UserCode string        `json:"user_code"` // sealed
	Expires  time.Time     `json:"expires"`
	Interval time.Duration `json:"interval"` // time between two polls
	Polled   time.Time     `json:"polled"`
	Denied   bool          `json:"denied,omitempty"`
	Granted  *Code         `json:"granted,omitempty"` // code for the device to redeem; nil until a person approves
}

// Devices manages the devices that are waiting for a login, in the session store.
type Devices struct {
	*core
	clients *Clients
	codes   *Codes
}

const (
	devicePoll    = 5 * time.Second // time between polls; each early poll adds this much (RFC 8628, section 3.5)
	devicePollMax = time.Minute
	deviceJitter  = time.Second      // how early a poll may arrive and still be accepted
	deviceKept    = 10 * time.Minute // how long an expired device is kept, so that polls get the right error
	deviceTries   = 10               // attempts at a compare-and-swap
)

func deviceKey(id string) session.Key { return session.Key{Kind: "device", ID: id} }
func userCodeKey(code string) session.Key {
	return session.Key{Kind: "usercode", ID: session.Digest(code)}
}

// DeviceCodes is the response to a device's first request (RFC 8628, section 3.2).
type DeviceCodes struct {
	Device, User        string
	ExpiresIn, Interval time.Duration
}

// Begin registers a device, which a person can then sign in with the requested scope. Its tokens
// are always for the issuer, so resources may contain only the issuer.
func (ds *Devices) Begin(ctx context.Context, c Client, rawScope string, resources []string) (DeviceCodes, error) {
	if _, err := ds.grantedAudience(c, nil, resources); err != nil {
		return DeviceCodes{}, err
	}
	if !c.May(GrantDevice) {
		return DeviceCodes{}, oauth("unauthorized_client", "this client is not registered for "+GrantDevice)
	}
	scope, err := c.parseScope(rawScope)
	if err != nil {
		return DeviceCodes{}, err
	}

	life := ds.Lifetimes().Device
	codes := DeviceCodes{Device: randomToken(), ExpiresIn: life, Interval: devicePoll}
	id := session.Digest(codes.Device)
	codes.User, err = ds.newUserCode(ctx, id, life)
	if err != nil {
		return DeviceCodes{}, err
	}

	d := Device{ClientID: c.ID, Scope: scope, Expires: ds.Now().Add(life), Interval: devicePoll}
	d.UserCode, err = ds.Ring.SealSecret(userCodeOf(id), []byte(codes.User))
	if err != nil {
		return DeviceCodes{}, err
	}
	value, err := json.Marshal(d)
	if err != nil {
		return DeviceCodes{}, fmt.Errorf("writing device: %w", err)
	}
	return codes, ds.Sessions.Put(ctx, deviceKey(id), value, life+deviceKept)
}

// userCodeOf returns the name that binds a sealed user code to its device.
func userCodeOf(device string) string { return "user code of " + device }

// userLetters and userLength define the format of user codes. There are 20⁸ codes.
const (
	// userLetters are the letters of user codes (RFC 8628, section 6.1). They include no vowels, so
	// that codes do not spell words.
	userLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userLength  = 8
)

// newUserCode returns a user code that no other device has, and stores which device it belongs to.
func (ds *Devices) newUserCode(ctx context.Context, device string, life time.Duration) (string, error) {
	for {
		code := randomUserCode()
		err := ds.Sessions.Add(ctx, userCodeKey(code), []byte(device), life)
		if !errors.Is(err, problem.Conflict) {
			return code, err
		}
	}
}

// randomUserCode returns a random code in the format that people see, XXXX-XXXX. It has 34 bits of
// entropy.
func randomUserCode() string {
	var random [8]byte
	rand.Read(random[:])
	n := binary.BigEndian.Uint64(random[:]) // 2⁶⁴ is much larger than 20⁸, so codes are equally likely
	var code [userLength]byte
	for i := range code {
		code[i] = userLetters[n%uint64(len(userLetters))]
		n /= uint64(len(userLetters))
	}
	return string(code[:userLength/2]) + "-" + string(code[userLength/2:])
}

// ReadUserCode returns the user code that a person has typed. It ignores case, hyphens and spaces.
// ok is false if the text is not a user code (RFC 8628, section 6.1).
func ReadUserCode(typed string) (code string, ok bool) {
	letters := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(typed))
	if len(letters) != userLength || strings.Trim(letters, userLetters) != "" {
		return "", false
	}
	return letters[:userLength/2] + "-" + letters[userLength/2:], true
}

// These are the responses to a device's polls (RFC 8628, section 3.5).
var (
	errPending      = oauth("authorization_pending", "the request is not answered yet; poll again")
	errSlowDown     = oauth("slow_down", "poll less often: wait five more seconds between requests")
	errExpired      = oauth("expired_token", "the device code has expired; start over")
	errDeviceDenied = oauth("access_denied", "the subscriber denied access")
)

// Redeem returns the tokens for a device that a person has signed in. It does so only once. For any
// other device, it returns the error with which to answer the poll. If the device code was redeemed
// before, Redeem revokes the grant of the first redemption. resources has the same meaning as in
// Begin.
func (ds *Devices) Redeem(ctx context.Context, c Client, code string, resources []string,
	binding string) (TokenSet, error) {
	if err := c.checkBinding(binding); err != nil {
		return TokenSet{}, err
	}
	if _, err := ds.grantedAudience(c, nil, resources); err != nil {
		return TokenSet{}, err
	}
	if len(code) > 128 {
		return TokenSet{}, invalidGrant("the device code is not valid")
	}

	id := session.Digest(code)
	granted, err := ds.poll(ctx, c, id)
	switch {
	case errors.Is(err, problem.NotFound):
		return TokenSet{}, ds.codes.revokeReplayed(ctx, c, id, nil)
	case errors.Is(err, problem.Conflict):
		return TokenSet{}, errSlowDown // the device sends many polls at the same time
	case err != nil:
		return TokenSet{}, err
	}

	expires := ds.Now().Add(ds.Lifetimes().Device + deviceKept + remembered)
	set, err := ds.codes.exchange(ctx, c, granted, ds.Issuer, Redemption{Binding: binding},
		RedeemedCode{Hash: id, Expires: expires})
	if err != nil {
		return TokenSet{}, err
	}
	_ = ds.Sessions.Delete(ctx, deviceKey(id)) // only cleans up: the code's row prevents a second redemption
	ds.Observe("token_" + GrantDevice)
	return set, nil
}

// poll returns the code that a device may redeem, or the error with which to answer its poll.
func (ds *Devices) poll(ctx context.Context, c Client, id string) (granted Code, err error) {
	var answer error
	err = ds.change(ctx, id, func(d *Device) error {
		now := ds.Now()
		switch soon := now.Before(d.Polled.Add(d.Interval - deviceJitter)); {
		case d.ClientID != c.ID:
			return invalidGrant("the device code is not valid")
		case !now.Before(d.Expires):
			return errExpired
		case d.Denied:
			return errDeviceDenied
		case d.Granted != nil:
			granted, answer = *d.Granted, nil
		case soon:
			answer, d.Interval = errSlowDown, min(d.Interval+devicePoll, devicePollMax)
		default:
			answer = errPending
		}
		d.Polled = now
		return nil
	})
	if err != nil {
		return Code{}, err
	}
	return granted, answer
}
