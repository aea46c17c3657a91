package levels

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Flags is a set of properties of a recording. Operators can search for recordings by their flags.
type Flags uint8

// The flags. Databases store their values.
const (
	Silent  Flags = 1 << iota // no sample is louder than the noise of an idle line
	OneWay                    // one leg talks, and another leg does not
	Clipped                   // samples were cut off at full scale
	DeadAir                   // ten seconds or more without talk
)

// names lists the names of the flags, in the order of their values.
var names = []string{"silent", "one-way", "clipped", "dead-air"}

// FlagNames returns the names of all flags.
func FlagNames() []string { return slices.Clone(names) }

// FlagOf returns the flag with this name. ok is false if the name is unknown.
func FlagOf(name string) (f Flags, ok bool) {
	i := slices.Index(names, name)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// Names returns the names of the flags in the set. The list is never nil.
func (f Flags) Names() []string {
	set := []string{}
	for i, name := range names {
		if f&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return set
}

// MarshalJSON encodes the names as a JSON array.
func (f Flags) MarshalJSON() ([]byte, error) { return json.Marshal(f.Names()) }

// UnmarshalJSON parses a JSON array of names.
func (f *Flags) UnmarshalJSON(b []byte) error {
	var set []string
	if err := json.Unmarshal(b, &set); err != nil {
		return fmt.Errorf("reading flags: %w", err)
	}
	*f = 0
	for _, name := range set {
		flag, ok := FlagOf(name)
		if !ok {
			return fmt.Errorf("reading flags: %q is not a flag", name)
		}
		*f |= flag
	}
	return nil
}

// Thresholds of the flags.
const (
	idle        = 8     // largest sample of a silent line: the smallest A-law sample
	clippedFrom = 0.001 // minimum fraction of samples that are cut off
	deadAirFrom = 10.0  // minimum seconds without talk
	oneWayTalk  = 2.0   // minimum seconds of talk in one leg
	oneWayMute  = 0.2   // maximum seconds of talk in the other leg
)

// flags returns the flags that follow from the measurements and the largest sample.
func (f Facts) flags(largest int) (set Flags) {
	if largest <= idle {
		set |= Silent
	}
	if slices.Max(f.Talk) >= oneWayTalk && slices.Min(f.Talk) <= oneWayMute {
		set |= OneWay
	}
	if f.Clipped >= clippedFrom {
		set |= Clipped
	}
	if f.LongestSilence >= deadAirFrom {
		set |= DeadAir
	}
	return set
}
