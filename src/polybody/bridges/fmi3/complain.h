/* Messages to the importer. Included after `Instance`, which has `log` and `environment`. */
static Status complain(const Instance *m, Status status, const char *message) {
    if (m->log) m->log(m->environment, status, status == WARNING ? "logStatusWarning" : "logStatusError", message);
    return status;
}
