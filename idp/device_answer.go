package idp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// EnterUserCode begins an authorization request for the device that shows a code. typed is the code
// as a person typed it, and place is the person's network. If no waiting device shows the code,
// EnterUserCode returns problem.NotFound. If too many codes come from place, it returns
// problem.RateLimited (RFC 8628, section 5.1).
func (ds *Devices) EnterUserCode(ctx context.Context, typed, place string) (a AuthRequest, c Client, err error) {
	code, ok := ReadUserCode(typed)
	if !ok {
		return a, c, problem.NoSuch("device") // a typing error, which does not count as a guess
	}
	if err := ds.countGuess(ctx, place); err != nil {
		return a, c, err
	}

	id, err := ds.Sessions.Get(ctx, userCodeKey(code))
	if err != nil {
		return a, c, err
	}
	d, err := ds.findWaiting(ctx, string(id))
	if err != nil {
		return a, c, err
	}
	c, err = ds.clients.Find(ctx, d.ClientID)
	if err != nil {
		return a, c, err
	}

	// Always ask for consent, because the device may belong to someone other than the person who
	// typed the code (RFC 8628, section 5.4). Devices cannot limit the age or the class of the login,
	// so the defaults of the client apply.
	a = AuthRequest{
		ID:       randomToken(),
		ClientID: d.ClientID,
		Device:   string(id),
		Scope:    d.Scope,
		Prompt:   []string{"consent"},
		MaxAge:   c.DefaultMaxAge,
		Created:  ds.Now(),
	}
	a.wantACR(c.DefaultACR)
	return a, c, nil
}

// findWaiting finds a device whose request has not been answered yet.
func (ds *Devices) findWaiting(ctx context.Context, id string) (d Device, err error) {
	value, err := ds.Sessions.Get(ctx, deviceKey(id))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(value, &d); err != nil {
		return d, fmt.Errorf("reading device: %w", err)
	}
	if !d.isWaiting(ds.Now()) {
		return d, problem.NoSuch("device")
	}
	return d, nil
}

func (d Device) isWaiting(now time.Time) bool {
	return !d.Denied && d.Granted == nil && now.Before(d.Expires)
}

// UserCode returns the code on the display of the device whose request is a. If the device is no
// longer waiting, UserCode returns problem.NotFound.
func (ds *Devices) UserCode(ctx context.Context, a AuthRequest) (string, error) {
	d, err := ds.findWaiting(ctx, a.Device)
	if err != nil {
		return "", err
	}
	code, err := ds.Ring.OpenSecret(userCodeOf(a.Device), d.UserCode)
	return string(code), err
}

// SignIn permits the device whose request is a to get tokens for the login s.
func (ds *Devices) SignIn(ctx context.Context, a AuthRequest, s Login) error {
	code := codeOf(a, s)
	return ds.answer(ctx, a, func(d *Device) { d.Granted = &code })
}

// Deny denies the request a of a device, whose next poll fails with access_denied.
func (ds *Devices) Deny(ctx context.Context, a AuthRequest) error {
	return ds.answer(ctx, a, func(d *Device) { d.Denied = true })
}

// answer answers a device's request. Only the first answer counts.
func (ds *Devices) answer(ctx context.Context, a AuthRequest, answer func(*Device)) error {
	return ds.change(ctx, a.Device, func(d *Device) error {
		if !d.isWaiting(ds.Now()) {
			return problem.NoSuch("device")
		}
		answer(d)
		return nil
	})
}

// change updates a device, and retries if it was changed concurrently. After too many retries it
// returns problem.Conflict.
func (ds *Devices) change(ctx context.Context, id string, change func(*Device) error) (err error) {
	for range deviceTries {
		var old, value []byte
		if old, err = ds.Sessions.Get(ctx, deviceKey(id)); err != nil {
			return err
		}

		var d Device
		if err := json.Unmarshal(old, &d); err != nil {
			return fmt.Errorf("reading device: %w", err)
		}

		if err := change(&d); err != nil {
			return err
		}
		if value, err = json.Marshal(d); err != nil {
			return fmt.Errorf("writing device: %w", err)
		}

		left := d.Expires.Add(deviceKept).Sub(ds.Now())
		err = ds.Sessions.CompareAndSwap(ctx, deviceKey(id), old, value, left)
		if !errors.Is(err, problem.Conflict) {
			return err
		}
	}
	return err
}

// guessWindow is the period over which the user codes typed in a network are counted.
const guessWindow = 10 * time.Minute

// countGuess counts a user code. It returns problem.RateLimited if too many were typed in the
// network whose name is place, or in the range of networks around it. Beyond the limit, correct
// codes are refused, too. Otherwise, guessers would learn which codes are correct. Codes are
// counted atomically before they are looked up, so that the limit also applies to concurrent
// guesses.
func (ds *Devices) countGuess(ctx context.Context, place string) error {
	if ds.DeviceGuesses <= 0 {
		return nil
	}
	if err := ds.countGuessAt(ctx, place, ds.DeviceGuesses); err != nil {
		return err
	}
	wide := limit.Range(place)
	if wide == place {
		return nil
	}
	return ds.countGuessAt(ctx, "range "+wide, limit.Wide*ds.DeviceGuesses)
}

func (ds *Devices) countGuessAt(ctx context.Context, place string, most int) error {
	n, err := ds.Sessions.Incr(ctx, session.Key{Kind: "guess", ID: session.Digest(place)}, guessWindow)
	if err != nil {
		return err
	}
	if n <= int64(most) {
		return nil
	}
	return &problem.Error{
		Kind:       problem.RateLimited,
		Code:       "rate_limit_exceeded",
		Message:    "too many device codes",
		RetryAfter: guessWindow,
	}
}
