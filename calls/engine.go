package calls

import "time"

// An Engine carries the media of legs. Package calls passes descriptions (SDP) through
// without reading them. An Engine is safe for concurrent use.
//
// Errors that a client caused, such as an offer with nothing to talk with, are
// problem.Invalid and say what is wrong.
type Engine interface {
	// Answer opens the media of a leg whose client made an offer, and returns the answer.
	Answer(w Watcher, offer string) (m Media, answer string, err error)

	// Offer opens the media of a leg whose client is to be rung, and returns the offer. It
	// has a section for each one that other carries, with the same codecs, so that packets
	// pass between the two without being decoded.
	Offer(w Watcher, other Media) (m Media, offer string, err error)

	// Close ends all media and frees the port.
	Close() error
}

// A Media is the media of one leg. Its methods are safe for concurrent use; after Close
// they do nothing.
type Media interface {
	// Accept takes the client's answer to the engine's offer.
	Accept(answer string) error

	// Update takes a later offer of the same client: sections added, directions changed, or
	// ICE restarted. After an error the media is as it was before.
	Update(offer string) (answer string, err error)

	// Renew takes the offer of a client that has come back, for example after a reload of
	// its page. It replaces all transports; links, mutes and the recording stay.
	Renew(offer string) (answer string, err error)

	// Link sends what this leg's client sends of a kind to the client of another leg. Nil
	// sends it to nobody; a leg linked to itself is an echo. Two legs linked to each other
	// in both kinds are a conversation. Several legs may not be linked to one in the same
	// kind: the last one wins.
	Link(kind Kind, to Media)

	// Mute drops what the client sends of a kind.
	Mute(kind Kind, muted bool)

	// Deafen drops the sound that others send to the client; pictures pass.
	Deafen(deaf bool)

	// Dial sends digits (0-9, *, #, A-D) to the linked leg as telephone events (RFC 4733).
	Dial(digits string)

	// Beep plays a short tone to the client. Others are not heard for as long as it lasts.
	Beep()

	// Record passes the packets that the client sends to a tap from now on. Nil stops.
	Record(t Tap)

	// Kinds returns the kinds of media that the client has a section for.
	Kinds() []Kind

	// Quality returns what was measured until now.
	Quality() Quality

	Close()
}

// A Kind is a kind of media.
type Kind string

// The kinds.
const (
	Audio Kind = "audio"
	Video Kind = "video"
)

// A Watcher is notified of what happens to the media of a leg. Its methods are called from the
// engine's goroutines and must not block.
type Watcher interface {
	// Connected: a section of the client has its keys, so media can pass. It is called again
	// after each Renew, and when the client comes back after Lost.
	Connected(p Path)
	// Lost: nothing has come from the client for [LostAfter]. Connected follows if it comes
	// back.
	Lost()
	// Talking: the client began or stopped to speak, by the audio level that it reports
	// (RFC 6464).
	Talking(talking bool)
	// Failed: a fault of the engine ended the media, which is closed.
	Failed(err error)
}

// LostAfter is how long a client may be silent at the network's level. Browsers check
// their path several times a second.
const LostAfter = 8 * time.Second

// A Path is how media reaches a client.
type Path struct {
	Transport string // udp or tcp
	Local     string // our address and port
	Remote    string // the client's, as we see it
}

// A Tap receives the packets of one leg, decrypted. Its methods are called for each packet
// by the goroutine that forwards it: they must not block and must not keep Payload.
type Tap interface {
	Packet(p Packet)
	// Clock relates the sender's RTP clock of a kind to its wall clock (RTCP sender report,
	// RFC 3550, section 6.4.1).
	Clock(kind Kind, rtp uint32, wall time.Time)
}

// A Packet is one RTP packet that a client sent.
type Packet struct {
	Kind    Kind
	Codec   string // opus, G722, PCMU, PCMA, telephone-event, VP8
	SSRC    uint32
	Seq     uint16
	Time    uint32 // RTP timestamp, in the codec's clock rate (RFC 3551): G722 counts 8000 a second
	Arrived time.Time
	Payload []byte
}

// Quality is what was measured of the media that a client sends and receives.
type Quality struct {
	Received, Lost uint64        // packets from the client; those missing between them
	Sent           uint64        // packets to the client
	Jitter         time.Duration // of audio from the client (RFC 3550, section 6.4.1)
	RoundTrip      time.Duration // to the client, by its reports; 0 if unknown
	LostThere      float64       // share of our audio packets that the client misses, 0 to 1
	Path           Path
}
