package idp

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
)

// A device that signs in gets a mark, which names the subscribers who use it. A mark has a random
// ID. For each subscriber, it has an expiry and a MAC of the ID, the expiry, the subscriber and the
// subscriber's epoch. The epoch invalidates marks when the password changes, because somebody else
// may have known the old password.
//
// A mark gives no access. When failed passwords are counted, it distinguishes the device from the
// devices of strangers; see [Logins.LogIn]. For attempts at a second factor, only marks from logins
// with two factors count. The MAC in these marks also covers the fact that the login had two
// factors.
const (
	knownFor       = 180 * 24 * time.Hour
	deviceAccounts = 5 // maximum number of accounts that a mark names; they are the last to sign in
	maxDeviceMark  = 1 << 10
)

// DeviceMarks issues and verifies the marks of devices.
type DeviceMarks struct{ *core }

// Mark returns a new mark for a device that has just signed in as sub, and how long the new mark is
// valid. mark is the device's previous mark. factors reports whether the login had two factors. If
// a login with two factors has marked a device, its later marks keep that status.
func (ms *DeviceMarks) Mark(mark string, sub fabric.Subscriber, factors bool) (string, time.Duration) {
	id, codes, ok := parseDevice(mark)
	if !ok {
		id = rand.Text()
	}

	earned := oneFactor
	if factors || ms.findProven(mark, sub) != "" {
		earned = twoFactors
	}

	until := strconv.FormatInt(ms.Now().Add(knownFor).Unix(), 10)
	fresh := []string{until + "-" + ms.code(id, sub, until, earned)}
	for _, code := range codes {
		if len(fresh) < deviceAccounts && !ms.verify(id, code, sub, oneFactor) &&
			!ms.verify(id, code, sub, twoFactors) {
			fresh = append(fresh, code)
		}
	}
	return id + "." + strings.Join(fresh, "."), knownFor
}

// find returns the id of a device whose mark names the subscriber, or "".
func (ms *DeviceMarks) find(mark string, sub fabric.Subscriber) string {
	return cmp.Or(ms.findProven(mark, sub), ms.findEarned(mark, sub, oneFactor))
}

// findProven is like find, but only for devices that had a login with two factors.
func (ms *DeviceMarks) findProven(mark string, sub fabric.Subscriber) string {
	return ms.findEarned(mark, sub, twoFactors)
}

func (ms *DeviceMarks) findEarned(mark string, sub fabric.Subscriber, by earning) string {
	id, codes, ok := parseDevice(mark)
	if !ok || sub.ID == "" {
		return ""
	}
	for _, code := range codes {
		if ms.verify(id, code, sub, by) {
			return id
		}
	}
	return ""
}

// An earning is the way in which a device earned its mark.
type earning string

const (
	oneFactor  earning = ""             // a login with one factor, or a new password set through a link
	twoFactors earning = " two factors" // a login with two factors
)

// newDeviceLetters returns the letter that notifies a subscriber of a login on a new device. It
// returns nil if the account knows the device or has no email address.
func (ls *Logins) newDeviceLetters(sub fabric.Subscriber, s Login, from Visitor) ([]mail.Letter, error) {
	if sub.Email == "" || from.known || ls.marks.find(from.Device, sub) != "" {
		return nil, nil
	}
	facts := audit.Origin{
		Actor:   audit.Actor{Kind: audit.Subscriber, ID: sub.ID},
		Agent:   s.UserAgent,
		Address: s.Address,
	}.Facts(ls.Now())
	l, err := ls.newLetter(mail.NewDevice, sub.ProjectID, sub.Email, facts)
	l.SubscriberID = sub.ID
	return []mail.Letter{l}, err
}

// verify reports whether code, an entry in a device's mark, is valid for the subscriber. by is the
// way in which the mark must have been earned.
func (ms *DeviceMarks) verify(id, code string, sub fabric.Subscriber, by earning) bool {
	until, mac, _ := strings.Cut(code, "-")
	at, err := strconv.ParseInt(until, 10, 64)
	return err == nil && ms.Now().Before(time.Unix(at, 0)) &&
		slices.ContainsFunc(ms.Ring.DeriveTrusted(knownDevices), func(key [sha256.Size]byte) bool {
			return hmac.Equal([]byte(mac), []byte(codeWith(key, id, sub, until, by)))
		})
}

const knownDevices = "known devices"

func (ms *DeviceMarks) code(id string, sub fabric.Subscriber, until string, by earning) string {
	return codeWith(ms.Ring.Derive(knownDevices), id, sub, until, by)
}

func codeWith(key [sha256.Size]byte, id string, sub fabric.Subscriber, until string, by earning) string {
	h := hmac.New(sha256.New, key[:])
	fmt.Fprintf(h, "%s %s %s", id, sub.ID, until)
	if sub.Epoch > 0 { // the MAC omits epoch 0, so that marks from before there were epochs remain valid
		fmt.Fprintf(h, " %d", sub.Epoch)
	}
	h.Write([]byte(by))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func parseDevice(mark string) (id string, codes []string, ok bool) {
	parts := strings.Split(mark, ".")
	if len(mark) > maxDeviceMark || len(parts) < 2 || len(parts[0]) != len(rand.Text()) {
		return "", nil, false
	}
	return parts[0], parts[1:min(len(parts), 1+deviceAccounts)], true
}
