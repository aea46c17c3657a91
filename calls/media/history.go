package media

// historyLength is how many packets of video can be repeated: about half a second at the
// highest bit rate.
const historyLength = 128

// A history keeps the last encrypted packets of a stream. A client that missed some gets
// them from here. Its source cannot repeat those that the engine has received, because a
// repeated packet looks like a replayed one (RFC 3711, section 3.3.2).
type history struct {
	packets [historyLength]struct {
		seq    uint16
		sealed []byte
	}
}

// add remembers a packet.
func (h *history) add(seq uint16, sealed []byte) {
	p := &h.packets[seq%historyLength]
	p.seq, p.sealed = seq, append(p.sealed[:0], sealed...)
}

// find returns a packet, or nil if it is not remembered.
func (h *history) find(seq uint16) []byte {
	if p := &h.packets[seq%historyLength]; p.seq == seq && len(p.sealed) > 0 {
		return p.sealed
	}
	return nil
}
