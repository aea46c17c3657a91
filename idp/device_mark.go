package idp

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
)

// A device that signs in is given a mark, which says of which subscribers it is the
// device: its random id, and for each of them until when, and a code of all three and of
// the subscriber's epoch, since whoever had the password before may have signed in, too.
// The mark opens nothing; it only sets the device apart from strangers, see [Logins.LogIn].
// Where second factors are tried, only one sets it apart that a login with two of them has
// earned: the code of that is another.
const (
	knownFor       = 180 * 24 * time.Hour
	deviceAccounts = 5 // of one device, at most: the last that signed in
	maxDeviceMark  = 1 << 10
)

// DeviceMarks signs the marks of devices and verifies them.
type DeviceMarks struct{ *core }

// Mark returns the mark of a device that has just signed in as a subscriber, from
// the one that it had, and how long it is good. factors says that it was by two factors;
// what was earned so before stays so.
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

// find returns the id of the device of a mark, if it is one of a subscriber's;
// "" for any other, and for a mark that was made up.
func (ms *DeviceMarks) find(mark string, sub fabric.Subscriber) string {
	return cmp.Or(ms.findProven(mark, sub), ms.findEarned(mark, sub, oneFactor))
}

// findProven is knownDevice for a mark that a login with two factors has earned.
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

// An earning is by what a mark was earned.
type earning string

const (
	oneFactor  earning = ""             // a login by a password, or a new password that was set by a link
	twoFactors earning = " two factors" // a login by two factors
)

// newDeviceLetters returns the letter that tells a subscriber of a login on a device that its account
// does not know, or nothing.
func (ls *Logins) newDeviceLetters(sub fabric.Subscriber, s Login, from Visitor) ([]mail.Letter, error) {
	if sub.Email == "" || from.known || ls.marks.find(from.Device, sub) != "" {
		return nil, nil
	}
	facts := audit.Origin{Actor: audit.Actor{Kind: audit.Subscriber, ID: sub.ID}, Agent: s.UserAgent,
		Address: s.Address}.Facts(ls.Now())
	l, err := ls.newLetter(mail.NewDevice, sub.ProjectID, sub.Email, facts)
	l.SubscriberID = sub.ID
	return []mail.Letter{l}, err
}

// verify reports whether a code of a device's mark is good, names a subscriber, and was
// earned so.
func (ms *DeviceMarks) verify(id, code string, sub fabric.Subscriber, by earning) bool {
	until, mac, _ := strings.Cut(code, "-")
	at, err := strconv.ParseInt(until, 10, 64)
	return err == nil && ms.Now().Before(time.Unix(at, 0)) &&
		hmac.Equal([]byte(mac), []byte(ms.code(id, sub, until, by)))
}

func (ms *DeviceMarks) code(id string, sub fabric.Subscriber, until string, by earning) string {
	key := ms.Ring.Derive("known devices")
	h := hmac.New(sha256.New, key[:])
	fmt.Fprintf(h, "%s %s %s", id, sub.ID, until)
	if sub.Epoch > 0 { // marks from before there were epochs are good in the first
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
