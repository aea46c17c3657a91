package calls

import (
	"net/netip"
	"time"
)

// An Engine carries the media of legs. Package calls passes descriptions (SDP) through
// without reading them. An Engine is safe for concurrent use.
//
// Errors that a client caused, such as an offer with no usable codec, are problem.Invalid and
// describe the cause.
type Engine interface {
	// Answer opens the media of a leg for an offer from its client, and returns the answer.
	Answer(w Watcher, offer string, t Terms) (m Media, answer string, err error)

	// Offer opens the media of a leg whose client is about to ring, and returns the offer. The
	// offer has the sections and codecs of other, which is the media of the other leg. Packets can
	// therefore pass between the two legs without transcoding. The offer to a phone contains only
	// audio.
	Offer(w Watcher, other Media, t Terms) (m Media, offer string, err error)

	// NewMixer returns a Mixer without members.
	NewMixer() Mixer

	// Close ends all media and frees the ports.
	Close() error
}

// SRTP holds the rules for the encryption of a phone's media (RFC 3711). Descriptions contain the
// keys (RFC 4568).
type SRTP struct {
	Required bool   `json:"r,omitempty"` // media without encryption is refused
	Suites   string `json:"s,omitempty"` // the permitted suites, the best first; "" permits all
}

// Terms are the conditions for the media of a leg. The zero value means a browser, and any codec.
type Terms struct {
	// Phone is the address of a phone, which exchanges RTP or SRTP instead of WebRTC's media. Media
	// is received only from this address, and sent only there. Unless Claimed is set, the phone
	// must have proved that it receives packets there, because RTP has no such proof. The zero
	// value means a browser.
	Phone netip.Addr

	// Gateway means that the phone is a SIP gateway. Its media may come from the address in its
	// description. If this address is private, Phone must also be private.
	Gateway bool

	// Claimed means that Phone is only the source of a UDP packet, which may be forged. Until media
	// arrives from Phone, only a few packets are sent there.
	Claimed bool

	// Source means that the leg is a screen or an additional device of a member.
	Source bool

	// SRTP applies to phones. If SRTP is not required, the engine offers RTP to phones, and accepts
	// both RTP and SRTP in the offers of phones.
	SRTP SRTP

	// Codecs lists the preferred audio codecs by their names in SDP, the best first. If the client
	// offers none of them, the engine chooses a different codec.
	Codecs []string
}

// A Mixer connects the media of a room. Each member hears the sum of all others, and sees the video
// of at most one of them. The methods of a Mixer are safe for concurrent use.
type Mixer interface {
	// Answer opens media for an offer, as [Engine.Answer] does. The audio uses a codec that can be
	// mixed; other codecs in t.Codecs are ignored. The client is not a member yet.
	Answer(w Watcher, offer string, t Terms) (m Media, answer string, err error)

	// Add makes m a member. m must come from the mixer's Answer. Closing m removes it.
	Add(m Media)

	// Remove ends the membership of m: it no longer hears the members, and they no longer hear it.
	Remove(m Media)

	// Adopt prepares the media of a call between two parties, so that it can become a member. m
	// must not be linked. If the client can receive no codec that can be mixed, nothing changes,
	// and Adopt returns problem.Invalid.
	Adopt(m Media) error

	// Release ends the membership of m and makes it usable in a call between two parties again.
	Release(m Media)

	// Show forwards the video of from to each client of to. It replaces the video that the client
	// has seen so far. If from is nil, the clients see nobody. The clients need not be members.
	Show(from Media, to ...Media)

	// SendsVideo reports whether the client of m may send video.
	SendsVideo(m Media) bool

	// SetVolumes sets how loud m is for the others, and how loud the others are for m. Each is -50
	// to 50: 0 changes nothing, and 10 doubles the amplitude.
	SetVolumes(m Media, in, out int)

	// Play plays a sound to all members. The sound is one channel of samples at 16 kHz, and
	// replaces a sound that is still playing. done is called after the whole sound was played. It
	// is not called if the sound is replaced or the mixer is closed.
	Play(sound []int16, done func())

	// ChimeUp plays a short rising sound to all members, and ChimeDown a short falling one.
	ChimeUp()
	ChimeDown()

	// Record copies the sum of all members to t from now on, in G.722. A nil t stops the copying.
	Record(t Tap)

	// Close ends the mixer, but not the media of its members.
	Close()
}

// A Media is the media of one leg. Its methods are safe for concurrent use; after Close
// they do nothing.
type Media interface {
	// MoveTo replaces Phone in the Terms of a gateway, because a gateway may answer from a different
	// address than the one that was called first. MoveTo must be called before Accept.
	MoveTo(phone netip.Addr)

	// Accept takes the client's answer to the engine's offer.
	Accept(answer string) error

	// Update takes a later offer from the same client, which adds sections, changes directions or
	// restarts ICE. After an error, the media is unchanged.
	Update(offer string) (answer string, err error)

	// Renew applies the offer of a client that has reconnected, for example after a reload of its
	// page. It replaces all transports, but keeps links, mutes and the recording.
	Renew(offer string) (answer string, err error)

	// Link forwards this client's media of one kind to the client of another leg, or to nobody if
	// to is nil. A leg that is linked to itself is an echo. Two legs that are linked to each other
	// in both kinds are a conversation. A leg receives each kind from at most one leg, so linking a
	// second leg replaces the first.
	Link(kind Kind, to Media)

	// Mute sets whether media of one kind from the client is dropped.
	Mute(kind Kind, muted bool)

	// Deafen sets whether audio to the client is dropped. Video is not affected.
	Deafen(deaf bool)

	// SendDigits sends digits (0-9, *, #, A-D) to the linked leg as telephone events (RFC 4733).
	SendDigits(digits string)

	// Beep plays a short tone to the client. Meanwhile, the client does not hear the others.
	Beep()

	// Record copies the client's packets to t from now on. A nil t stops the copying.
	Record(t Tap)

	// Kinds returns the kinds of media for which the client has a section.
	Kinds() []Kind

	// Quality returns the measurements so far.
	Quality() Quality

	Close()
}

// A Kind is a kind of media.
type Kind string

// The kinds of media.
const (
	Audio Kind = "audio"
	Video Kind = "video"
)

// A Watcher is notified of what happens to the media of a leg. Its methods are called from the
// engine's goroutines and must not block.
type Watcher interface {
	// Connected is called when a section of the client has its keys, so that media can flow. It is
	// called again after each Renew, and when the client reconnects after Lost.
	Connected(p Path)
	// Lost is called when no packet has arrived from the client for [LostAfter]. When the client
	// reconnects, Connected is called.
	Lost()
	// Talking is called when the person at the client starts or stops speaking, according to the
	// audio level that the client reports (RFC 6464).
	Talking(talking bool)
	// Pressed is called when the client of a mixer's member presses a key, for which the client
	// sends telephone events (RFC 4733). digit is one of 0-9, *, # and A-D.
	Pressed(digit byte)
	// Failed is called after an internal error ended the media. The media is already closed.
	Failed(err error)
}

// LostAfter is the time after which a client that sends no packets counts as lost. Browsers check
// their path several times a second.
const LostAfter = 8 * time.Second

// A Path describes how media reaches a client.
type Path struct {
	Transport string // udp or tcp
	Local     string // our address and port
	Remote    string // the client's address and port, as the engine sees them
}

// A Tap receives the packets of one leg, decrypted. Its methods are called by the goroutine that
// handles the leg's packets, so they must not block. Packet must not keep Payload.
type Tap interface {
	Packet(p Packet)
	// Clock relates the sender's RTP clock for kind to its wall clock (RTCP sender report, RFC
	// 3550, section 6.4.1).
	Clock(kind Kind, rtp uint32, wall time.Time)
}

// A Packet is one RTP packet that a client sent.
type Packet struct {
	Kind    Kind
	Codec   string // opus, G722, PCMU, PCMA, telephone-event, VP8
	SSRC    uint32
	Seq     uint16
	Time    uint32 // RTP timestamp, at the codec's clock rate (RFC 3551): 8000 Hz for G722
	Arrived time.Time
	Payload []byte
}

// Quality holds measurements of the media that a client sends and receives.
type Quality struct {
	Received, Lost uint64        // packets from the client that arrived, and that were lost
	Sent           uint64        // packets to the client
	Jitter         time.Duration // jitter of the client's audio (RFC 3550, section 6.4.1)
	RoundTrip      time.Duration // round-trip time, according to the client's reports; 0 if unknown
	LostThere      float64       // share of our audio packets that the client misses, 0 to 1
	Path           Path
}
