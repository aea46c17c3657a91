package fabric

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Devices registers the devices that push services can reach.
type Devices struct {
	*core
	store       DeviceStore
	subscribers *Subscribers
}

// A DeviceStore keeps devices; see [Stores].
type DeviceStore interface {
	// PutDevice writes a device. If the subscriber already has a device with the same token,
	// PutDevice changes the type and name of that device, and keeps its id, key and creation time.
	// If the subscriber then has more than limit devices, nothing is changed, and the error is
	// problem.Invalid.
	PutDevice(ctx context.Context, d Device, limit int) (Device, error)
	DeleteDevice(ctx context.Context, subscriberID, id string) error
	ListDevices(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Device], error)
}

// A Device is an app installation. A push service can announce a call to it while none of the
// subscriber's apps is open.
type Device struct {
	ID           string
	ProjectID    string
	SubscriberID string
	Type         string // iOS, Android or Desktop
	Name         string
	TokenHash    string // used to find the device by its token
	Sealed       string // the secrets, sealed for the store
	Created      time.Time

	DeviceSecrets // set only by [Devices.Register]
}

// DeviceSecrets are the fields that only the device itself may see.
type DeviceSecrets struct {
	Token   string `json:"token"`    // the token of the push service
	PushKey string `json:"push_key"` // the key that seals push messages: base64 of 32 bytes
}

// maxDevices is the maximum number of devices per subscriber.
const maxDevices = 50

// maxDeviceToken is the maximum length of a push service's token.
const maxDeviceToken = 4096

// A DeviceInput holds the fields of a device to register.
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

// isVisible reports whether text consists only of visible ASCII characters.
func isVisible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Register registers a device for the SAT's subscriber. If the device is already registered, it
// keeps its id and key.
func (ds *Devices) Register(ctx context.Context, sat Token, in DeviceInput) (Device, error) {
	if err := in.Check(); err != nil {
		return Device{}, err
	}

	d, err := ds.newDevice(sat, in)
	if err != nil {
		return Device{}, err
	}
	stored, err := ds.store.PutDevice(ctx, d, maxDevices)
	if errors.Is(err, problem.NotFound) {
		return Device{}, problem.NoCredentials().Because("the subscriber was deleted")
	}
	if err != nil {
		return Device{}, fmt.Errorf("registering device: %w", err)
	}

	err = ds.open(&stored)
	return stored, err
}

// newDevice returns a device with a new key, and its secrets sealed.
func (ds *Devices) newDevice(sat Token, in DeviceInput) (Device, error) {
	var key [32]byte
	rand.Read(key[:])
	secrets, err := json.Marshal(DeviceSecrets{in.Token, base64.StdEncoding.EncodeToString(key[:])})
	if err != nil {
		return Device{}, fmt.Errorf("writing the secrets of a device: %w", err)
	}

	hash := sha256.Sum256([]byte(in.Token))
	d := Device{
		ID:           newID(),
		ProjectID:    sat.ProjectID,
		SubscriberID: sat.SubscriberID,
		Type:         in.Type,
		Name:         in.Name,
		TokenHash:    hex.EncodeToString(hash[:]),
		Created:      ds.now(),
	}
	d.Sealed, err = ds.c.Ring.SealSecret(DeviceSecretName(d.ID), secrets)
	return d, err
}

// DeviceSecretName returns the name under which the secrets of a device are sealed.
func DeviceSecretName(id string) string { return "device:" + id }

// open decrypts the secrets of a device into d.
func (ds *Devices) open(d *Device) error {
	raw, err := ds.c.Ring.OpenSecret(DeviceSecretName(d.ID), d.Sealed)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &d.DeviceSecrets); err != nil {
		return fmt.Errorf("reading the secrets of a device: %w", err)
	}
	return nil
}

// Delete deletes a device of the SAT's subscriber.
func (ds *Devices) Delete(ctx context.Context, sat Token, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("device")
	}
	return ds.store.DeleteDevice(ctx, sat.SubscriberID, id)
}

// List returns a page of a subscriber's devices.
func (ds *Devices) List(ctx context.Context, projectID, id string, q page.Query) (page.Page[Device], error) {
	return listOf(ctx, ds.subscribers, projectID, id, q, ds.store.ListDevices)
}

// DeleteOf deletes a device of a project's subscriber.
func (ds *Devices) DeleteOf(ctx context.Context, projectID, subscriberID, id string) error {
	s, err := ds.subscribers.Find(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	return ds.Delete(ctx, Token{SubscriberID: s.ID}, id)
}
