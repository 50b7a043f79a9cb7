package classify

// entry is what is known of a function before it is called.
type entry struct {
	id       uint32
	category Category // 0 if the slot is free
	transfer bool     // a request may be a later part of a file
	wrapper  bool     // a request carries another
	name     string
}

// index finds an entry by its TL id: a hash table with linear probing. It is
// here because a look-up in Go's map took more than all the rest of judging a
// call, and it is this small because TL ids are checksums, that is, hashes
// already.
type index [indexSize]entry

// indexSize is a power of two, and so much more than the functions of a layer
// that the index never fills up.
const indexSize = 1 << 11

// get returns the entry with the id, nil if there is none.
func (x *index) get(id uint32) *entry {
	for i := id; ; i++ {
		e := &x[i%indexSize]
		if e.category == 0 {
			return nil
		}
		if e.id == id {
			return e
		}
	}
}

// put adds an entry under an id that is not there yet.
func (x *index) put(id uint32, e entry) {
	e.id = id
	i := id
	for x[i%indexSize].category != 0 {
		i++
	}
	x[i%indexSize] = e
}
