// Package uuid7 generates version 7 UUIDs (RFC 9562, section 5.7), which sort by time. A list that
// is sorted by id is also sorted by time, so it needs no second index.
package uuid7

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// At returns a new id for the given time. Its first 48 bits are the milliseconds. The 12 bits after
// the version are the fraction of the millisecond (RFC 9562, section 6.2, method 3). The rest is
// random. Therefore ids sort by time if their times differ by at least a quarter of a microsecond.
func At(at time.Time) string {
	u := uuid.New()
	fraction := int64(at.Nanosecond()) % int64(time.Millisecond) << 12 / int64(time.Millisecond)
	binary.BigEndian.PutUint16(u[6:], 7<<12|uint16(fraction))
	putMillis(&u, at)
	return u.String()
}

// First returns the smallest id of the millisecond that contains the given time. Lists use it to
// find rows that were created in that millisecond or later.
func First(at time.Time) string {
	var u uuid.UUID
	putMillis(&u, at)
	return u.String()
}

// Time returns the time of an id, in whole milliseconds. ok is false for anything but a version 7 UUID.
func Time(id string) (at time.Time, ok bool) {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return time.Time{}, false
	}
	ms := int64(binary.BigEndian.Uint32(u[0:]))<<16 | int64(binary.BigEndian.Uint16(u[4:]))
	return time.UnixMilli(ms), true
}

// putMillis sets the first 48 bits of an id. Times before 1970 count as 1970.
func putMillis(u *uuid.UUID, at time.Time) {
	ms := uint64(max(0, at.UnixMilli()))
	binary.BigEndian.PutUint32(u[0:], uint32(ms>>16))
	binary.BigEndian.PutUint16(u[4:], uint16(ms))
}
