package idp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A device that signs in is given a mark, which says of which subscribers it is the
// device: its random id, and for each of them until when, and a code of all three.
// The mark opens nothing; it only sets the device apart from strangers, see [Provider.LogIn].
const (
	knownFor       = 180 * 24 * time.Hour
	deviceAccounts = 5 // of one device, at most: the last that signed in
	maxDeviceMark  = 1 << 10
)

// DeviceMark gives the mark of a device that has just signed in as a subscriber, from
// the one that it had, and how long it is good.
func (p *Provider) DeviceMark(mark, subscriberID string) (string, time.Duration) {
	id, codes, ok := parseDevice(mark)
	if !ok {
		id = rand.Text()
	}
	until := strconv.FormatInt(p.Now().Add(knownFor).Unix(), 10)
	fresh := []string{until + "-" + p.deviceCode(id, subscriberID, until)}
	for _, code := range codes {
		if len(fresh) < deviceAccounts && !p.deviceOf(id, code, subscriberID) {
			fresh = append(fresh, code)
		}
	}
	return id + "." + strings.Join(fresh, "."), knownFor
}

// knownDevice gives the id of the device of a mark, if it is one of a subscriber's;
// "" for any other, and for a mark that was made up.
func (p *Provider) knownDevice(mark, subscriberID string) string {
	id, codes, ok := parseDevice(mark)
	if !ok || subscriberID == "" {
		return ""
	}
	for _, code := range codes {
		if p.deviceOf(id, code, subscriberID) {
			return id
		}
	}
	return ""
}

// deviceOf reports whether a code of a device's mark is good, and names a subscriber.
func (p *Provider) deviceOf(id, code, subscriberID string) bool {
	until, mac, _ := strings.Cut(code, "-")
	at, err := strconv.ParseInt(until, 10, 64)
	return err == nil && p.Now().Before(time.Unix(at, 0)) && hmac.Equal([]byte(mac), []byte(p.deviceCode(id, subscriberID, until)))
}

func (p *Provider) deviceCode(id, subscriberID, until string) string {
	key := p.Ring.Derive("known devices")
	h := hmac.New(sha256.New, key[:])
	fmt.Fprintf(h, "%s %s %s", id, subscriberID, until)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func parseDevice(mark string) (id string, codes []string, ok bool) {
	parts := strings.Split(mark, ".")
	if len(mark) > maxDeviceMark || len(parts) < 2 || len(parts[0]) != len(rand.Text()) {
		return "", nil, false
	}
	return parts[0], parts[1:min(len(parts), 1+deviceAccounts)], true
}
