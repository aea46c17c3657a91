package fabric

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A Device is where a subscriber is told of a call when no app of its is open.
type Device struct {
	ID           string
	ProjectID    string
	SubscriberID string
	Type         string // iOS, Android or Desktop
	Token        string // of the push service
	Name         string
	PushKey      string // what pushes to it are sealed with: base64 of 32 bytes
	Created      time.Time
}

// maxDevices is how many devices a subscriber may have.
const maxDevices = 50

// maxDeviceToken bounds the tokens of push services.
const maxDeviceToken = 4096

// A DeviceInput registers a device.
type DeviceInput struct {
	Type  string
	Token string
	Name  string
}

// Check reports everything that is wrong with the input.
func (in DeviceInput) Check() error {
	errs := []error{checkText("device_name", in.Name)}
	switch in.Type {
	case "iOS", "Android", "Desktop":
	case "":
		errs = append(errs, problem.Missing("device_type"))
	default:
		errs = append(errs, problem.BadParam("device_type", "device_type must be iOS, Android or Desktop"))
	}
	switch {
	case in.Token == "":
		errs = append(errs, problem.Missing("device_token"))
	case len(in.Token) > maxDeviceToken:
		errs = append(errs, problem.BadParam(
			"device_token", "device_token is too long (maximum is %d characters)", maxDeviceToken))
	case !isVisible(in.Token):
		errs = append(errs, problem.BadParam("device_token", "device_token must be visible ASCII characters"))
	}
	return errors.Join(errs...)
}

// isVisible reports whether a text is of visible ASCII characters alone.
func isVisible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// RegisterDevice registers a device of the SAT's subscriber. One that is there
// already keeps its id and key.
func (f *Fabric) RegisterDevice(ctx context.Context, sat Token, in DeviceInput) (Device, error) {
	if err := in.Check(); err != nil {
		return Device{}, err
	}
	var key [32]byte
	rand.Read(key[:])
	d := Device{
		ID: newID(), ProjectID: sat.ProjectID, SubscriberID: sat.SubscriberID, Type: in.Type, Token: in.Token,
		Name:    in.Name,
		PushKey: base64.StdEncoding.EncodeToString(key[:]), Created: f.now(),
	}
	d, err := f.c.Store.PutDevice(ctx, d, maxDevices)
	if errors.Is(err, problem.NotFound) {
		return Device{}, problem.NoCredentials()
	}
	if err != nil {
		return Device{}, fmt.Errorf("registering device: %w", err)
	}
	return d, nil
}

// DeleteDevice forgets a device of the SAT's subscriber.
func (f *Fabric) DeleteDevice(ctx context.Context, sat Token, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("device")
	}
	return f.c.Store.DeleteDevice(ctx, sat.SubscriberID, id)
}
