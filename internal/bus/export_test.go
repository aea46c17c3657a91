package bus

// Answering is the number of requests of one kind that a node answers at the same time.
const Answering = answering
